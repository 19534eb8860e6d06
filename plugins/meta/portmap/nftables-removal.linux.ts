import { hasNftChain, listNftElements, type Netlink, openNetfilter } from "@tscni/netlink";
import { identifier, type NftText, nft } from "@tscni/nftables";
import { isOnlyRecord, type Owner } from "@tscni/record";
import {
  createElements,
  deleteElements,
  type Element,
  elementsOf,
  idOf,
  keyText,
  mapsOf,
} from "./nft-elements.ts";
import { commentOf, isOfNetwork } from "./nft-layout.ts";
import { find, run } from "./nftables-table.linux.ts";
import { allPublished, type Published } from "./owners.linux.ts";
import { kind, type Publication } from "./publication.ts";

/** Takes back what an attachment has published, by its record. What is not there any more, or another's, is let be. */
export function unpublishNftables(owner: Owner, publication: Publication): void {
  const { table = "" } = publication;
  using netlink = openNetfilter();
  const comment = commentOf(owner);
  const own = elementsOf(publication).filter((e) => find(netlink, table, e)?.comment === comment);
  if (isOnlyRecord(kind, owner) && elementsIn(netlink, table).every((e) => e.comment === comment)) {
    run(removeTable(netlink, table));
    return;
  }
  run([...deleteElements(table, own), ...(publication.heir ? inheritance(owner, table, own) : [])]);
}

/** Nobody has anything in the table any more: it goes, so that nothing of ours is left. */
const removeTable = (netlink: Netlink, table: string): NftText[] =>
  hasNftChain(netlink, "inet", table, "hostports") ? [nft`delete table inet ${identifier(table)}`] : [];

/** Statements that give elements to those who asked for them, too. */
function inheritance(owner: Owner, table: string, freed: readonly Element[]): NftText[] {
  const open = new Set(freed.map(idOf));
  const statements: NftText[] = [];
  for (const heir of allPublished()) {
    if (!heir.data.waits || heir.data.table !== table || commentOf(heir) === commentOf(owner)) continue;
    const elements = elementsOf(heir.data).filter((element) => open.delete(idOf(element)));
    statements.push(...createElements(table, elements, commentOf(heir)));
  }
  return statements;
}

/** Removes what several attachments have published, by their records, in one transaction. */
export function removeAllPublished(published: readonly Published[]): void {
  using netlink = openNetfilter();
  const statements: NftText[] = [];
  for (const record of published) {
    const { table = "" } = record.data;
    const own = elementsOf(record.data).filter((e) => find(netlink, table, e)?.comment === commentOf(record));
    statements.push(...deleteElements(table, own));
  }
  run(statements);
}

/** Removes all elements of the attachment that a table has, for want of a record. */
export function sweepNftables(owner: Owner, table: string): void {
  using netlink = openNetfilter();
  const comment = commentOf(owner);
  run(
    deleteElements(
      table,
      elementsIn(netlink, table).filter((element) => element.comment === comment),
    ),
  );
}

interface Present {
  map: string;
  key: string;
  comment: string;
}

const elementsIn = (netlink: Netlink, table: string): Present[] =>
  [...mapsOf(4), ...mapsOf(6)].flatMap((map) =>
    listNftElements(netlink, "inet", table, map).map(({ key, comment = "" }) => ({
      map,
      key: keyText(map, key),
      comment,
    })),
  );

/**
 * Removes what a network's tables hold of containers that are not in GC's list, in one transaction. A table that has
 * nothing left is removed as a whole.
 */
export function gcNftables(
  network: string,
  tables: Iterable<string>,
  valid: readonly Owner[],
  warn: (message: string) => void,
): void {
  using netlink = openNetfilter();
  const kept = new Set(valid.map(commentOf));
  const statements: NftText[] = [];
  const counts = new Map<string, number>();
  for (const table of tables) {
    if (!hasNftChain(netlink, "inet", table, "hostports")) continue;
    const all = elementsIn(netlink, table);
    const stale = all.filter(({ comment }) => isOfNetwork(comment, network) && !kept.has(comment));
    for (const { map, comment } of stale)
      if (!map.startsWith("masq")) counts.set(comment, (counts.get(comment) ?? 0) + 1);
    if (stale.length === all.length) statements.push(...removeTable(netlink, table));
    else statements.push(...deleteElements(table, stale));
  }
  run(statements);
  for (const [comment, count] of counts) warn(`gc: removed ${count} host ports of "${comment}"`);
}
