import type { Attachment, Libcni } from "@tscni/libcni";
import { type Result, toCniError } from "@tscni/types";
import { type ContainerOptions, runtimeConfOf } from "./container.ts";
import { failureOf, type NetworkFailure } from "./errors.ts";
import type { Network } from "./networks.ts";

type Outcomes = readonly PromiseSettledResult<Result>[];

/** What came of attaching a container to networks. */
export interface Attached {
  /** Of all networks, in their order, when there are no failures. */
  results: readonly Result[];
  failures: readonly NetworkFailure[];
  /** The networks that something may have been done on, and that were without the container before. */
  touched: readonly Network[];
}

/** ADD of a container on every network, all at once or one after the other until one fails. */
export async function attach(
  libcni: Libcni,
  container: { id: string; netns: string },
  networks: readonly Network[],
  options: ContainerOptions & { serially?: boolean },
  signal: AbortSignal | undefined,
): Promise<Attached> {
  let before: readonly Attachment[];
  try {
    before = libcni.getCachedAttachments(container.id).filter(({ failed }) => failed === undefined);
  } catch (error) {
    return { results: [], failures: [failureOf("(cache)", error)], touched: [] };
  }
  const add = async (network: Network): Promise<Result> => {
    signal?.throwIfAborted();
    const rt = runtimeConfOf(container, network, options);
    return libcni.addNetworkList(network.list, rt, signal ? { signal } : {});
  };
  const outcomes = options.serially
    ? await inTurn(networks, add)
    : await Promise.allSettled(networks.map(add));
  // A second setup of a container that is attached fails, and must not take away what the first one made.
  const isNew = ({ name, ifName }: Network) =>
    !before.some((attachment) => attachment.network === name && attachment.ifName === ifName);
  return {
    results: outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : [])),
    failures: failuresOf(networks, outcomes),
    touched: networks.slice(0, outcomes.length).filter(isNew),
  };
}

/** None after one that failed: the outcomes end with it. */
async function inTurn(
  networks: readonly Network[],
  add: (network: Network) => Promise<Result>,
): Promise<Outcomes> {
  const outcomes: PromiseSettledResult<Result>[] = [];
  for (const network of networks) {
    const [outcome] = await Promise.allSettled([add(network)]);
    outcomes.push(outcome!);
    if (outcome!.status === "rejected") break;
  }
  return outcomes;
}

const failuresOf = (networks: readonly Network[], outcomes: Outcomes): NetworkFailure[] =>
  outcomes.flatMap((outcome, i) =>
    outcome.status === "rejected" ? [{ network: networks[i]!.name, error: toCniError(outcome.reason) }] : [],
  );
