import { countNftRules, hasNftChain, type Netlink, openNetfilter } from "@tscni/netlink";
import { NftError, type NftText } from "@tscni/nftables";
import { type Owner, writeRecord } from "@tscni/record";
import { CniError, ErrorCode } from "@tscni/types";
import { portText } from "./mapping.ts";
import { createElements, deleteElements, type Element, elementsOf, idOf } from "./nft-elements.ts";
import { goOwnerOf } from "./nft-go.linux.ts";
import { type Conditions, commentOf, layout, masqChain, masqChainOf, rulesOf } from "./nft-layout.ts";
import { addElements, find, leadsTo, ownerNamed, run } from "./nftables-table.linux.ts";
import { conflict, forget, isGone, notKnownToBeGone, type Published } from "./owners.linux.ts";
import { kind, ownerText, type Publication } from "./publication.ts";

type Told = Owner & { warn(message: string): void };

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
      if (rules.length > 0 || !addElements(netlink, publication.table!, elements, commentOf(owner)))
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
