import { type Attachment, type Libcni, parseConfList, rememberedNetns } from "@tscni/libcni";
import { CniError, ErrorCode } from "@tscni/types";
import { type ContainerOptions, runtimeConfOf } from "./container.ts";
import { failureOf, type NetworkFailure } from "./errors.ts";
import type { Network } from "./networks.ts";

interface Container {
  id: string;
  /** "" when the namespace is gone; undefined for the one that the container was attached with. */
  netns: string | undefined;
}

/**
 * DEL of a container on every network, the last attached first, and of what the cache has of it beside: attachments by a
 * config that was changed or removed since. Goes on past failures and returns them; when the signal fires, so do those that
 * were not begun.
 */
export async function removeAttachments(
  libcni: Libcni,
  container: Container,
  networks: readonly Network[],
  options: ContainerOptions,
  signal: AbortSignal | undefined,
): Promise<NetworkFailure[]> {
  const { cached, failures } = readCached(libcni, container.id);
  const isOf = (network: Network) => (attachment: Attachment) =>
    attachment.network === network.name && attachment.ifName === network.ifName;
  const loaded = networks.map((network) => ({ network, attachment: cached.find(isOf(network)) }));
  const others = cached.filter((attachment) => !networks.some((network) => isOf(network)(attachment)));

  for (const { network, attachment } of loaded.toReversed())
    await attempt(failures, network.name, signal, (call) =>
      attachment !== undefined && wasChanged(network, attachment)
        ? libcni.delAttachment(inNamespace(attachment, container), call)
        : libcni.delNetworkList(
            network.list,
            runtimeConfOf(
              { ...container, netns: container.netns ?? (attachment ? rememberedNetns(attachment) : "") },
              network,
              options,
            ),
            call,
          ),
    );
  for (const attachment of others)
    await attempt(failures, attachment.network, signal, (call) =>
      libcni.delAttachment(inNamespace(attachment, container), call),
    );
  return failures;
}

/** DEL on these networks alone. */
export async function takeBack(
  libcni: Libcni,
  container: { id: string; netns: string },
  networks: readonly Network[],
  options: ContainerOptions,
  signal: AbortSignal | undefined,
): Promise<NetworkFailure[]> {
  const failures: NetworkFailure[] = [];
  for (const network of networks.toReversed())
    await attempt(failures, network.name, signal, (call) =>
      libcni.delNetworkList(network.list, runtimeConfOf(container, network, options), call),
    );
  return failures;
}

async function attempt(
  failures: NetworkFailure[],
  network: string,
  signal: AbortSignal | undefined,
  work: (call: { signal?: AbortSignal }) => Promise<void>,
): Promise<void> {
  try {
    // libcni itself would begin a DEL in spite of a signal that has fired.
    if (signal?.aborted)
      throw new CniError(ErrorCode.Internal, "not removed: the caller stopped it before", {
        cause: signal.reason,
      });
    await work(signal ? { signal } : {});
  } catch (error) {
    failures.push(failureOf(network, error));
  }
}

function readCached(libcni: Libcni, id: string): { cached: Attachment[]; failures: NetworkFailure[] } {
  try {
    return { cached: libcni.getCachedAttachments(id), failures: [] };
  } catch (error) {
    return { cached: [], failures: [failureOf("(cache)", error)] };
  }
}

/**
 * Whether an attachment was made by another config than the one that is loaded: what that one did, its own plugins
 * know to undo. The cache has no drop-in files, so a network with such keeps to what is loaded.
 */
function wasChanged({ list }: Network, { config }: Attachment): boolean {
  if (config === list.bytes || list.plugins.some(({ source }) => source !== undefined)) return false;
  try {
    return parseConfList(config).plugins.length > 0;
  } catch {
    return false;
  }
}

const inNamespace = (attachment: Attachment, { netns }: Container): Attachment =>
  netns === undefined ? attachment : { ...attachment, netns };
