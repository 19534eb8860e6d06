import { getLink, openRoute } from "@tscni/netlink";
import { listRecords, type Owner, type Recorded, recordedNetworks, removeRecord } from "@tscni/record";
import { statIfPresent } from "@tscni/sys";
import { CniError, ErrorCode, type Result } from "@tscni/types";
import { keyOf, type Mapping, portText } from "./mapping.ts";
import { kind, ownerText, type Publication, sameMapping } from "./publication.ts";

/** An attachment that has a record, as far as it can be read. */
export type Published = Recorded<Publication> & { readonly data: Publication };

/** The attachments of other containers that have published a port: usually one, if any. */
export function ownersOf(own: Owner, family: 4 | 6, mapping: Mapping): Published[] {
  const key = keyOf(mapping);
  return allPublished().filter(
    ({ containerId, data }) =>
      containerId !== own.containerId && sameMapping(data, family, key) !== undefined,
  );
}

export function allPublished(): Published[] {
  return recordedNetworks(kind)
    .flatMap((network) => listRecords<Publication>(kind, network))
    .filter((record): record is Published => record.data !== undefined);
}

/** The interfaces on the host that a result names, as far as they are there: later, one that is not is gone. */
export function presentInterfaces({ interfaces }: Result): string[] {
  const names = interfaces.filter(({ sandbox }) => !sandbox).map(({ name }) => name);
  if (names.length === 0) return [];
  using host = openRoute();
  return names.filter((name) => getLink(host, { name }) !== undefined);
}

/**
 * Whether a container is gone: an interface that it had on the host is not there any more or, where it had none, its
 * namespace is not. In doubt it lives.
 */
export function isGone({ hostInterfaces, netns }: Publication): boolean {
  try {
    if (hostInterfaces.length === 0) return netns !== "" && statIfPresent(netns) === undefined;
    using host = openRoute();
    return hostInterfaces.some((name) => getLink(host, { name }) === undefined);
  } catch {
    return false;
  }
}

/** The error of an ADD that asks for a port which is somebody else's. */
export const conflict = (mapping: Mapping, owner: string, details = ""): CniError =>
  new CniError(ErrorCode.Internal, `host port ${portText(mapping)} is taken by ${owner}`, { details });

/** What can be done where nobody's record tells of an owner. */
export const notKnownToBeGone = "it is not known to be gone; if it is, a DEL of it frees the port";

/** Throws unless everyone who has published the port is gone. */
export function verifyGone(mapping: Mapping, owners: readonly Published[]): void {
  const alive = owners.find(({ data }) => !isGone(data));
  if (alive !== undefined) throw conflict(mapping, ownerText(alive));
}

/** Removes the records of containers that are gone, once their ports are somebody else's. */
export function forget(gone: Iterable<Published>, warn: (message: string) => void): void {
  for (const record of gone) {
    removeRecord(kind, record);
    warn(`host ports of ${ownerText(record)} went to another container: its interface is gone`);
  }
}
