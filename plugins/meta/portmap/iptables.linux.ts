import {
  editTables,
  type Family,
  isRefused,
  optionOf,
  readTable,
  startIptables,
  type Table,
  TableChange,
  type TableEdit,
} from "@tscni/iptables";
import { type Owner, writeRecord } from "@tscni/record";
import { CniError, ErrorCode } from "@tscni/types";
import type { PortmapConf } from "./conf.ts";
import {
  editChain,
  ensureShared,
  mayBeThere,
  nat,
  type Removal,
  removeChains,
} from "./iptables-chains.linux.ts";
import {
  chainOf,
  groupsOf,
  hostportChain,
  ownerInComment,
  sharedRules,
  targetRules,
} from "./iptables-layout.ts";
import { findGone } from "./iptables-owners.linux.ts";
import { heldLock } from "./lock.linux.ts";
import { addressOf } from "./mapping.ts";
import { allPublished, forget, type Published } from "./owners.linux.ts";
import { kind, type Publication } from "./publication.ts";
import { settle } from "./settle.ts";

/**
 * Publishes: reads each family's table, once, then makes one transaction of what is missing in it. Throws for a port
 * that is another container's. `before` is what the attachment had published until now.
 */
export function publishIptables(
  owner: Owner & { warn(message: string): void },
  conf: PortmapConf,
  publication: Publication,
  before: Publication | undefined,
): void {
  const own = (family: Family) => addressesOf(family, [before, publication]);
  const edit = (tables: readonly TableEdit[]) => {
    if (tables.some(({ family, table }) => isShared(owner, table, own(family))))
      markShared(owner, publication);
    const gone = new Map<string, Published>();
    for (const { family, table } of tables)
      for (const found of findGone(owner, family, table, publication)) gone.set(found.path, found);
    for (const { family, table, change } of tables) {
      ensureShared(change, table, sharedRules(conf));
      removeGone(change, table, family, [...gone.values()]);
      const target = publication.targets.find((each) => each.family === family);
      editChain(change, table, chainOf(owner.network, owner.containerId), {
        drop: own(family),
        add: target === undefined ? [] : targetRules(target, conf),
        entries: target?.entries ?? [],
      });
    }
    return gone.values();
  };
  forget(editTables(familiesOf(publication, before), nat, edit, heldLock()), owner.warn);
}

/** Whether the container's chain has ports of another of its interfaces. */
const isShared = (owner: Owner, table: Table, own: ReadonlySet<string>): boolean =>
  groupsOf(table.rules(chainOf(owner.network, owner.containerId))).some(({ address }) => !own.has(address));

/** Has those who share a chain know of it before they do. */
function markShared(owner: Owner, publication: Publication): void {
  publication.heir = true;
  writeRecord(kind, owner, publication);
  for (const other of allPublished())
    if (other.network === owner.network && other.containerId === owner.containerId && !other.data.heir)
      writeRecord(kind, other, { ...other.data, heir: true });
}

function familiesOf(...publications: (Publication | undefined)[]): Family[] {
  const used = (family: Family) => publications.some((p) => p?.targets.some((t) => t.family === family));
  return ([4, 6] as const).filter(used);
}

/** The addresses that publications lead ports of a family to. */
const addressesOf = (family: Family, publications: readonly (Publication | undefined)[]): Set<string> =>
  new Set(
    publications
      .flatMap((publication) => publication?.targets ?? [])
      .filter((target) => target.family === family)
      .map(addressOf),
  );

function removeGone(change: TableChange, table: Table, family: Family, gone: readonly Published[]): void {
  const byChain = new Map<string, Publication[]>();
  for (const { network, containerId, data } of gone) {
    const chain = chainOf(network, containerId);
    byChain.set(chain, [...(byChain.get(chain) ?? []), data]);
  }
  for (const [chain, publications] of byChain)
    editChain(change, table, chain, { drop: addressesOf(family, publications) });
}

/**
 * Takes back what an attachment has published, by its record and without a look at first. Where that fails, since
 * something is missing, and where another interface of the container shares the chain, by what is really there.
 */
export function unpublishIptables(owner: Owner, publication: Publication): void {
  const chain = chainOf(owner.network, owner.containerId);
  const removeOwn = (family: Family) => {
    removeChains(family, () => new Map([[chain, addressesOf(family, [publication])]]));
  };
  if (publication.heir) {
    settle(publication.targets.map(({ family }) => removeOwn.bind(undefined, family)));
    return;
  }
  const waits = publication.targets.map(({ family, entries = [] }) => {
    const change = new TableChange(nat);
    for (const { rule } of entries) change.delete(hostportChain, rule);
    return { family, wait: begin(family, change.flush(chain).removeChain(chain)) };
  });
  settle(
    waits.map(({ family, wait }) => () => {
      try {
        wait();
      } catch (error) {
        if (isRefused(error)) removeOwn(family);
        else if (mayBeThere(family, chain)) throw error;
      }
    }),
  );
}

/** Starts a transaction, so that both families' are under way; what goes wrong comes out of the wait. */
function begin(family: Family, change: TableChange): () => void {
  try {
    const run = startIptables(family, [change], heldLock());
    return () => run.wait();
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

/** Removes what attachments of a network have published, by their records, in one transaction for each family. */
export function removePublished(published: readonly Published[]): void {
  for (const family of familiesOf(...published.map(({ data }) => data))) {
    const removals = removalsOf(family, published);
    removeChains(family, () => removals);
  }
}

function removalsOf(family: Family, published: readonly Published[]): Map<string, Removal> {
  const removals = new Map<string, Set<string>>();
  for (const { network, containerId, data } of published) {
    const addresses = addressesOf(family, [data]);
    if (data.backend !== "iptables" || addresses.size === 0) continue;
    const chain = chainOf(network, containerId);
    removals.set(chain, new Set([...(removals.get(chain) ?? []), ...addresses]));
  }
  return removals;
}

/**
 * Removes from a family's table what it has of a network's containers that are not in GC's list, told by the comments
 * that name network and container, and of interfaces that are not, told by their records. Returns the chains.
 */
export function gcIptables(
  family: Family,
  network: string,
  validContainers: ReadonlySet<string>,
  stale: readonly Published[],
): string[] {
  return removeChains(family, (table) => {
    const removals = removalsOf(family, stale);
    for (const rule of table.rules(hostportChain)) {
      const named = ownerInComment(rule);
      if (named?.network !== network || validContainers.has(named.containerId)) continue;
      const chain = chainOf(network, named.containerId);
      if (optionOf(rule, "-j") === chain) removals.set(chain, "all");
    }
    return removals;
  });
}

/**
 * Throws unless everything is there, of what is shared and of the attachment's own; where `foreign`, unless all is
 * there that the reference makes.
 */
export function checkIptables(
  owner: Owner,
  conf: PortmapConf,
  publication: Publication,
  foreign: boolean,
): void {
  const chain = chainOf(owner.network, owner.containerId);
  for (const target of publication.targets) {
    const table = readTable(target.family, nat);
    const rules = targetRules(target, conf).map((rule) => ({ chain, rule }));
    const entries = (target.entries ?? [])
      .filter(({ own }) => !(own && foreign))
      .map(({ rule }) => ({ chain: hostportChain, rule }));
    for (const { chain: within, rule } of [...sharedRules(conf), ...entries, ...rules])
      if (!table.hasRule(within, rule))
        throw new CniError(
          ErrorCode.Internal,
          `${table.has(within) ? "a rule" : `the chain ${within}`} is missing from the table nat of ${target.family === 4 ? "iptables" : "ip6tables"}`,
          { details: `-A ${within} ${rule.join(" ")}` },
        );
  }
}
