import {
  type Family,
  IptablesError,
  optionOf,
  type Rule,
  readTable,
  ruleKey,
  runIptables,
  startIptables,
  type Table,
  TableChange,
} from "@tscni/iptables";
import { hasNftChain, openNetfilter } from "@tscni/netlink";
import { type Owner, writeRecord } from "@tscni/record";
import { readTextFileIfPresent } from "@tscni/sys";
import { CniError, ErrorCode, joinErrors } from "@tscni/types";
import type { PortmapConf } from "./conf.ts";
import {
  chainOf,
  chainPrefix,
  groupsOf,
  hostportChain,
  ownerInComment,
  type SharedRule,
  sameRules,
  sharedRules,
  targetRules,
} from "./iptables-layout.ts";
import { heldLock } from "./lock.linux.ts";
import { addressOf, type Mapping } from "./mapping.ts";
import {
  allPublished,
  conflict,
  forget,
  notKnownToBeGone,
  ownersOf,
  type Published,
  verifyGone,
} from "./owners.linux.ts";
import { type Entry, kind, type Publication } from "./publication.ts";

const nat = "nat";

/** Others change the table between our look at it and our change, which then fails: it is tried so many times. */
const attempts = 4;

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
  const families = familiesOf(publication, before);
  for (let attempt = 1; ; attempt++) {
    // Every table is read before the first is changed: where one can't be, nothing has been done.
    const tables = families.map((family) => ({ family, table: readTable(family, nat) }));
    if (
      tables.some(({ family, table }) => isShared(owner, table, addressesOf(family, [before, publication])))
    )
      markShared(owner, publication);
    const gone = new Map<string, Published>();
    for (const { family, table } of tables)
      for (const found of findGone(owner, family, table, publication)) gone.set(found.path, found);
    try {
      for (const { family, table } of tables) {
        const change = new TableChange(nat);
        ensureShared(change, table, sharedRules(conf));
        removeGone(change, table, family, [...gone.values()]);
        const target = publication.targets.find((each) => each.family === family);
        editChain(change, table, chainOf(owner.network, owner.containerId), {
          drop: addressesOf(family, [before, publication]),
          add: target === undefined ? [] : targetRules(target, conf),
          entries: target?.entries ?? [],
        });
        runIptables(family, [change], heldLock());
      }
      forget(gone.values(), owner.warn);
      return;
    } catch (error) {
      if (attempt === attempts || !isRefused(error)) throw error;
    }
  }
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

/** Whether iptables said no to a change, rather than being unable to do anything. */
const isRefused = (error: unknown): boolean => error instanceof IptablesError && error.problem === "failed";

function familiesOf(...publications: (Publication | undefined)[]): Family[] {
  const used = (family: Family) => publications.some((p) => p?.targets.some((t) => t.family === family));
  return ([4, 6] as const).filter(used);
}

/**
 * The containers that have our ports and are gone. Throws for one that is not. The same container may have a port
 * twice, by way of two networks: then the first rule decides.
 */
function findGone(owner: Owner, family: Family, table: Table, publication: Publication): Published[] {
  const target = publication.targets.find((each) => each.family === family);
  if (target === undefined) return [];
  const wanted = new Map<string, Mapping>();
  for (const mapping of target.mappings) wanted.set(portKey(mapping), mapping);
  const own = chainOf(owner.network, owner.containerId);
  const conditions = target.entries?.map(({ rule }) => conditionsOf(rule)) ?? [];
  const gone: Published[] = [];
  for (const chain of chainsWithPorts(table, [...wanted.values()])) {
    if (chain === own) continue;
    const entries = entriesInto(table, chain);
    if (entries.length > 0 && !entries.some((rule) => conditions.includes(conditionsOf(rule)))) continue;
    for (const group of groupsOf(table.rules(chain))) {
      const mapping = wanted.get(portKey(group));
      if (mapping !== undefined) gone.push(...goneOwnersOf(owner, family, mapping, chain, entries));
    }
  }
  return gone;
}

/** The containers' chains that may do something with one of these ports. */
function chainsWithPorts(table: Table, mappings: readonly Mapping[]): string[] {
  // Each port is a look at the whole text; with many it is less work to take every chain apart.
  const chains =
    mappings.length > 16
      ? table.chains
      : mappings.flatMap(({ hostPort }) => table.chainsWith(` --dport ${hostPort} `));
  return [...new Set(chains)].filter((chain) => chain.startsWith(chainPrefix));
}

/** The owners of a port in another container's chain, if all of them are gone. Throws for one that is not. */
function goneOwnersOf(
  owner: Owner,
  family: Family,
  mapping: Mapping,
  chain: string,
  entries: readonly Rule[],
): Published[] {
  const owners = ownersOf(owner, family, mapping).filter(
    (record) => chainOf(record.network, record.containerId) === chain,
  );
  if (owners.length > 0) {
    verifyGone(mapping, owners);
    return owners;
  }
  // Nobody's record tells of it: the Go plugin made it.
  const named = entries.map(ownerInComment).find((found) => found !== undefined);
  if (named?.containerId === owner.containerId) return [];
  const who = named
    ? `container ${named.containerId} on network ${named.network}`
    : `the owner of the chain ${chain} of iptables`;
  throw conflict(mapping, who, notKnownToBeGone);
}

const entriesInto = (table: Table, chain: string): Rule[] =>
  table
    .references(chain)
    .filter((reference) => reference.chain === hostportChain)
    .map(({ rule }) => rule);

const portKey = (port: {
  protocol: string;
  hostPort: string | number;
  hostIp?: string | undefined;
}): string => `${port.protocol} ${port.hostIp ?? "*"} ${port.hostPort}`;

/** What a rule into a container's chain asks beside protocol and port, in one way of writing it. */
function conditionsOf(rule: Rule): string {
  const rest: string[] = [];
  for (let i = 0; i < rule.length; i++) {
    if (["-p", "-j", "--dports", "--destination-ports", "--comment"].includes(rule[i]!)) i++;
    else rest.push(rule[i]!);
  }
  return ruleKey(rest);
}

/** Adds what is missing of what all containers share: no rule twice, whatever was flushed. */
function ensureShared(change: TableChange, table: Table, rules: readonly SharedRule[]): void {
  const chains = new Set([hostportChain, ...rules.map(({ chain }) => chain)]);
  for (const chain of chains) if (!table.has(chain)) change.createChain(chain);
  for (const { chain, rule, first } of rules) {
    if (table.hasRule(chain, rule)) continue;
    if (first) change.insert(chain, 1, rule);
    else change.append(chain, rule);
  }
}

/** What is to become of a container's chain. */
interface ChainEdit {
  /** Ports that lead to these addresses go. */
  drop: ReadonlySet<string>;
  add?: readonly Rule[];
  entries?: readonly Entry[];
}

/**
 * Changes a container's chain and the rules that lead to it: ports of another of its interfaces stay. A chain that
 * becomes empty is removed.
 */
function editChain(
  change: TableChange,
  table: Table,
  chain: string,
  { drop, add = [], entries = [] }: ChainEdit,
): void {
  const kept = groupsOf(table.rules(chain)).filter(({ address }) => !drop.has(address));
  const rules = [...kept.flatMap((group) => group.rules), ...add];
  if (rules.length === 0) {
    removeChain(change, table, chain);
    return;
  }
  if (!table.has(chain)) change.createChain(chain);
  if (!sameRules(table.rules(chain), rules)) {
    if (table.rules(chain).length > 0) change.flush(chain);
    for (const rule of rules) change.append(chain, rule);
  }
  const wanted = entries.map(({ rule }) => ruleKey(rule));
  const present = new Set<string>();
  for (const rule of entriesInto(table, chain)) {
    const key = ruleKey(rule);
    const isOther = kept.some((group) => portsOf(rule).includes(group.hostPort));
    if (present.has(key) || !(isOther || wanted.includes(key))) change.delete(hostportChain, rule);
    else present.add(key);
  }
  for (const { rule, leading } of entries) {
    if (present.has(ruleKey(rule))) continue;
    if (leading) change.insert(hostportChain, 1, rule);
    else change.append(hostportChain, rule);
  }
}

const portsOf = (rule: Rule): string[] => (optionOf(rule, "--dports") ?? "").split(",");

/** Removes a chain and every rule that leads to it. */
function removeChain(change: TableChange, table: Table, chain: string): void {
  if (!table.has(chain)) return;
  for (const { chain: from, rule } of table.references(chain)) change.delete(from, rule);
  change.flush(chain).removeChain(chain);
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
    settle(
      publication.targets.map(
        ({ family }) =>
          () =>
            removeOwn(family),
      ),
    );
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
        else if (mayHaveChain(family, chain)) throw error;
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

/** Runs each step, and then throws what went wrong. */
function settle(steps: readonly (() => void)[]): void {
  const errors: unknown[] = [];
  for (const step of steps) {
    try {
      step();
    } catch (error) {
      errors.push(error);
    }
  }
  const joined = joinErrors(errors);
  if (joined) throw joined;
}

/** What goes of a container's chain: ports that lead to these addresses, or everything. */
export type Removal = ReadonlySet<string> | "all";

/** Removes chains, or parts of them, in one transaction. Returns which of them there were. */
export function removeChains(family: Family, removals: (table: Table) => Map<string, Removal>): string[] {
  for (let attempt = 1; ; attempt++) {
    const table = readTable(family, nat);
    const change = new TableChange(nat);
    const found = [...removals(table)].filter(([chain]) => table.has(chain));
    for (const [chain, removal] of found)
      if (removal === "all") removeChain(change, table, chain);
      else editChain(change, table, chain, { drop: removal });
    try {
      runIptables(family, [change], heldLock());
      return found.map(([chain]) => chain);
    } catch (error) {
      if (attempt === attempts || !isRefused(error)) throw error;
    }
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

/** Whether a chain is, or may be, there. Starts no process: legacy tables can't be looked into without one. */
export function mayHaveChain(family: Family, chain: string): boolean {
  using netlink = openNetfilter();
  if (hasNftChain(netlink, family === 4 ? "ip" : "ip6", nat, chain)) return true;
  const names = readTextFileIfPresent(`/proc/net/${family === 4 ? "ip" : "ip6"}_tables_names`);
  return names?.split("\n").includes(nat) ?? false;
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
