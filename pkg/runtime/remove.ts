import type { Libcni } from "@tscni/libcni";
import { type ContainerOptions, runtimeConfOf } from "./container.ts";
import { failureOf, type NetworkFailure } from "./errors.ts";
import type { Network } from "./networks.ts";

/**
 * DEL of a container on every network, and of what the cache has of it beside: attachments by a config that was changed or
 * removed since. Goes on past failures and returns them.
 */
export async function removeAttachments(
  libcni: Libcni,
  container: { id: string; netns: string },
  networks: readonly Network[],
  options: ContainerOptions,
  signal: AbortSignal | undefined,
): Promise<NetworkFailure[]> {
  const call = signal ? { signal } : {};
  const failures: NetworkFailure[] = [];
  const attempt = async (network: string, work: () => Promise<void>) => {
    try {
      await work();
    } catch (error) {
      failures.push(failureOf(network, error));
    }
  };
  for (const network of networks.toReversed()) {
    const rt = runtimeConfOf(container, network, options);
    await attempt(network.name, () => libcni.delNetworkList(network.list, rt, call));
  }
  const known = (name: string, ifName: string) =>
    networks.some((network) => network.name === name && network.ifName === ifName);
  let others: ReturnType<Libcni["getCachedAttachments"]> = [];
  await attempt("(cache)", async () => {
    others = libcni.getCachedAttachments(container.id);
  });
  for (const attachment of others) {
    if (known(attachment.network, attachment.ifName)) continue;
    await attempt(attachment.network, () => libcni.delAttachment(attachment, call));
  }
  return failures;
}
