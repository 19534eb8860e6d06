import {
  countNftRules,
  getNftElement,
  hasNftChain,
  listNftElements,
  type Netlink,
  type NftElementFound,
  openNetfilter,
} from "@tscni/netlink";
import { identifier, NftError, type NftText, nft, startNft } from "@tscni/nftables";
import { isOnlyRecord, type Owner, writeRecord } from "@tscni/record";
import { CniError, ErrorCode } from "@tscni/types";
import { heldLock } from "./lock.linux.ts";
import { portText } from "./mapping.ts";
import { goOwnerOf } from "./nft-go.linux.ts";
import {
  bytesOf,
  type Conditions,
  commentOf,
  createElements,
  deleteElements,
  type Element,
  elementsOfTarget,
  isOfNetwork,
  keyText,
  layout,
  mapsOf,
  masqChain,
  masqChainOf,
  rulesOf,
} from "./nft-layout.ts";
import { allPublished, conflict, forget, isGone, notKnownToBeGone, type Published } from "./owners.linux.ts";
import { kind, ownerText, type Publication } from "./publication.ts";

/** One transaction; none where there is nothing to do. */
function run(statements: readonly NftText[]): void {
  if (statements.length > 0) startNft(statements, heldLock()).wait();
}

type Told = Owner & { warn(message: string): void };

const elementsOf = ({ targets, masquerading = "none" }: Publication): Element[] =>
  targets.flatMap((target) => elementsOfTarget(target, masquerading));

const find = (netlink: Netlink, table: string, { map, key }: Pick<Element, "map" | "key">) =>
  getNftElement(netlink, "inet", table, map, bytesOf(key));

/**
 * Publishes in one transaction. It is the kernel that refuses it when one of the ports is taken; only then is it
 * asked by whom. Throws for a port that is another container's. `before` is what the attachment had until now, in the
 * same table.
 */
export function publishNftables(
  owner: Told,
  publication: Publication,
  conditions: Conditions,
  before: Publication | undefined,
): void {
  using netlink = openNetfilter();
  for (const { family, mappings } of publication.targets) {
    const taken = goOwnerOf(netlink, owner.containerId, family, mappings);
    if (taken !== undefined)
      throw conflict(taken.mapping, `container ${taken.containerId}`, notKnownToBeGone);
  }
  const rules = missingRules(netlink, publication, conditions, before !== undefined);
  const elements = elementsOf(publication);
  if (before === undefined) {
    try {
      run([...rules, ...createElements(publication.table!, elements, commentOf(owner))]);
      return;
    } catch (error) {
      if (!(error instanceof NftError && error.problem === "exists")) throw error;
    }
  }
  replaceElements(netlink, owner, publication, before, rules);
}

/**
 * Statements for what is missing of the table: all of it at first, nothing in most calls. An ADD looks at the chains
 * that every port goes through, which tells whether the table is there and was not flushed; a repair at all.
 */
function missingRules(
  netlink: Netlink,
  publication: Publication,
  conditions: Conditions,
  thorough: boolean,
): NftText[] {
  const { targets, masquerading = "none", table = "" } = publication;
  const hasRules = (chain: string, count: number) => countNftRules(netlink, "inet", table, chain) >= count;
  const chains = thorough ? Object.keys(rulesOf) : ["hostports"];
  const isWhole = chains.every((chain) => hasRules(chain, rulesOf[chain]!));
  const statements = isWhole ? [] : layout(table, conditions);
  if (masquerading !== "none")
    for (const target of targets)
      if (!hasRules(masqChainOf(target, masquerading), 1))
        statements.push(...masqChain(table, target, masquerading));
  return statements;
}

/**
 * Makes what is missing, takes the ports of containers that are gone, and removes what this attachment had before and
 * does not want any more. Throws for a port of a container that lives.
 */
function replaceElements(
  netlink: Netlink,
  owner: Told,
  publication: Publication,
  before: Publication | undefined,
  rules: readonly NftText[],
): void {
  const table = publication.table!;
  const comment = commentOf(owner);
  const wanted = elementsOf(publication);
  const deletions = new Map<string, Element>();
  const creations: Element[] = [];
  const gone = new Map<string, Published>();
  for (const element of wanted) {
    const found = find(netlink, table, element);
    if (found?.comment === comment && leadsTo(found, element)) continue;
    if (found !== undefined && found.comment !== comment) {
      const other = goneOwnerOf(owner, element, found.comment);
      if (other === "heir") {
        publication.waits = true;
        continue;
      }
      gone.set(other.path, other);
    }
    if (found !== undefined) deletions.set(idOf(element), element);
    creations.push(element);
  }
  const unwanted = new Map(before === undefined ? [] : elementsOf(before).map((e) => [idOf(e), e]));
  for (const element of wanted) unwanted.delete(idOf(element));
  for (const [id, element] of unwanted)
    if (find(netlink, table, element)?.comment === comment) deletions.set(id, element);
  for (const other of gone.values())
    for (const element of elementsOf(other.data))
      if (find(netlink, table, element)?.comment === commentOf(other)) deletions.set(idOf(element), element);
  if (publication.waits) writeRecord(kind, owner, publication);
  run([
    ...rules,
    ...deleteElements(table, [...deletions.values()]),
    ...createElements(table, creations, comment),
  ]);
  forget(gone.values(), owner.warn);
}

const idOf = ({ map, key }: Element): string => `${map} ${key}`;

function leadsTo(found: NftElementFound, { map, data }: Element): boolean {
  if (map.startsWith("masq")) return found.chain === data;
  const [a, b] = [found.value, bytesOf(data)];
  return a !== undefined && a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/** The attachment that a comment names, if it has a record. */
const ownerNamed = (comment = ""): Published | undefined =>
  allPublished().find((record) => commentOf(record) === comment);

/**
 * Finds out whether an element that is somebody else's can be ours: if its owner is gone, who is returned. Another
 * interface of this container keeps it until it goes, and we get it then; so does another container that was given the
 * same address. Throws for another container that lives, as one does that nothing is known of.
 */
function goneOwnerOf(owner: Owner, { mapping }: Element, comment = ""): Published | "heir" {
  const other = ownerNamed(comment);
  if (other !== undefined && other.containerId !== owner.containerId && isGone(other.data)) return other;
  if (mapping !== undefined && other?.containerId !== owner.containerId)
    throw conflict(mapping, other === undefined ? `"${comment}"` : ownerText(other));
  if (other !== undefined) writeRecord(kind, other, { ...other.data, heir: true });
  return "heir";
}

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

/** Throws unless everything is there, of what is shared and of the attachment's own. */
export function checkNftables(owner: Owner, publication: Publication): void {
  const { table = "", targets, masquerading = "none" } = publication;
  using netlink = openNetfilter();
  const missing = (what: string) =>
    new CniError(ErrorCode.Internal, `${what} is missing from the table inet ${table} of nftables`);
  const chains = { ...rulesOf };
  if (masquerading !== "none") for (const target of targets) chains[masqChainOf(target, masquerading)] = 1;
  for (const chain in chains)
    if (countNftRules(netlink, "inet", table, chain) < chains[chain]!)
      throw missing(hasNftChain(netlink, "inet", table, chain) ? `a rule of ${chain}` : `the chain ${chain}`);
  for (const element of elementsOf(publication)) {
    const what = element.mapping
      ? `host port ${portText(element.mapping)}`
      : `masquerading to ${element.key}`;
    const found = find(netlink, table, element);
    if (found === undefined) throw missing(what);
    const isOwn = found.comment === commentOf(owner);
    const isShared = !element.mapping || ownerNamed(found.comment)?.containerId === owner.containerId;
    if (isOwn ? !leadsTo(found, element) : !isShared)
      throw new CniError(ErrorCode.Internal, `${what} leads elsewhere, for "${found.comment}"`);
  }
}

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
