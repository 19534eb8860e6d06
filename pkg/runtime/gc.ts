import { type Attachment, GcError, type Libcni } from "@tscni/libcni";
import { failed, failureOf, type NetworkFailure } from "./errors.ts";
import type { Network } from "./networks.ts";
import type { GcOptions } from "./options.ts";

/** A container that lives, and with that everything of it; or only its interfaces of these names. */
export type LivingContainer = string | { readonly id: string; readonly ifNames: readonly string[] };

/** The living, or what tells them. */
export type Living =
  | Iterable<LivingContainer>
  | (() => Iterable<LivingContainer> | Promise<Iterable<LivingContainer>>);

export interface GarbageReport {
  /** Attachments that were taken away; with `dryRun`, that would be. */
  deleted: Attachment[];
  /** Those that belong to the living. */
  kept: Attachment[];
}

/**
 * Takes away what belongs to none of the living, network by network, past failures. Throws `gc-failed` with all of them.
 */
export async function collectGarbage(
  libcni: Libcni,
  networks: readonly Network[],
  living: readonly LivingContainer[],
  { loadedOnly = false, dryRun = false }: GcOptions,
  signal: AbortSignal | undefined,
): Promise<GarbageReport> {
  const call = signal ? { signal } : {};
  const report: GarbageReport = { deleted: [], kept: [] };
  const failures: NetworkFailure[] = [];
  const lives = livesAmong(living);
  const attachments = cachedAttachments(libcni);

  for (const { name, list } of networks) {
    // Also what no cache knows of belongs to the living, under the names that this network gives.
    const ifNames = networks.filter((network) => network.name === name).map(({ ifName }) => ifName);
    const named = living
      .filter((one) => typeof one === "string")
      .flatMap((containerId) => ifNames.map((ifName) => ({ containerId, ifName })));
    const cached = attachments.filter((one) => one.network === name && lives(one));
    const validAttachments = [...named, ...living.flatMap(interfacesOf), ...cached];
    try {
      signal?.throwIfAborted();
      const { deleted, kept } = await libcni.gcNetworkList(list, { validAttachments }, { ...call, dryRun });
      report.deleted.push(...deleted);
      report.kept.push(...kept);
    } catch (error) {
      if (error instanceof GcError) {
        report.deleted.push(...error.report.deleted);
        report.kept.push(...error.report.kept);
      }
      failures.push(failureOf(name, error));
    }
  }

  const loaded = new Set(networks.map(({ name }) => name));
  const others = loadedOnly ? [] : attachments.filter(({ network }) => !loaded.has(network));
  for (const attachment of others) {
    if (lives(attachment)) {
      report.kept.push(attachment);
      continue;
    }
    try {
      signal?.throwIfAborted();
      if (!dryRun) await libcni.delAttachment(attachment, call);
      report.deleted.push(attachment);
    } catch (error) {
      failures.push(failureOf(attachment.network, error));
    }
  }
  if (failures.length > 0) throw failed("gc-failed", "not everything could be collected", failures);
  return report;
}

function cachedAttachments(libcni: Libcni): readonly Attachment[] {
  try {
    return libcni.getCachedAttachments();
  } catch (error) {
    throw failed("gc-failed", "nothing could be collected", [failureOf("(cache)", error)]);
  }
}

const interfacesOf = (one: LivingContainer) =>
  typeof one === "string" ? [] : one.ifNames.map((ifName) => ({ containerId: one.id, ifName }));

function livesAmong(living: readonly LivingContainer[]): (attachment: Attachment) => boolean {
  const whole = new Set(living.filter((one) => typeof one === "string"));
  const interfaces = new Set(living.flatMap(interfacesOf).map((one) => `${one.containerId}/${one.ifName}`));
  return ({ containerId, ifName }) => whole.has(containerId) || interfaces.has(`${containerId}/${ifName}`);
}
