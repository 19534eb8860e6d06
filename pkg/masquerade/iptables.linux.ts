import { type Cidr, ipText } from "@tscni/addr";
import {
  editTable,
  type Family,
  isRefused,
  optionOf,
  type Rule,
  readTable,
  startIptables,
  type Table,
  TableChange,
} from "@tscni/iptables";
import type { Owner } from "@tscni/record";
import { CniError, ErrorCode } from "@tscni/types";
import { chainOf, iptablesCommentOf, subnetText } from "./names.ts";
import { nothing, ofFamily, type Pending, together } from "./types.ts";

/*
 * The rules of the Go plugins, pkg/ip/ipmasq_iptables_linux.go there: a chain for each container on a network, and a
 * rule for each address that leads into it. The containers' interfaces share the chain.
 */

const families = [4, 6] as const;
const tableName = "nat";
const hook = "POSTROUTING";
const multicast = { 4: "224.0.0.0/4", 6: "ff00::/8" } as const;

interface Rules {
  chain: string;
  /** Of the chain: within the subnet, packets stay as they are. */
  accepts: Rule[];
  /** Of the chain, behind them. */
  masquerade: Rule;
  /** Of POSTROUTING. */
  sources: Rule[];
}

function rulesOf(owner: Owner, family: Family, cidrs: readonly Cidr[]): Rules {
  const chain = chainOf(owner);
  const comment = ["-m", "comment", "--comment", iptablesCommentOf(owner)];
  const subnets = [...new Set(cidrs.map(subnetText))];
  return {
    chain,
    accepts: subnets.map((subnet) => ["-d", subnet, "-j", "ACCEPT", ...comment]),
    masquerade: ["!", "-d", multicast[family], "-j", "MASQUERADE", ...comment],
    sources: cidrs.map(({ ip }) => ["-s", ipText(ip), "-j", chain, ...comment]),
  };
}

/**
 * Starts making an attachment's rules, taking it that there are none. If there are (the container's other interface,
 * or what a killed ADD left), the wait makes what is missing.
 */
export function beginAdd(owner: Owner, cidrs: readonly Cidr[]): Pending[] {
  return eachFamily(cidrs, (family, ours) => {
    const { chain, accepts, masquerade, sources } = rulesOf(owner, family, ours);
    const change = new TableChange(tableName).createChain(chain);
    for (const rule of [...accepts, masquerade]) change.append(chain, rule);
    for (const rule of sources) change.append(hook, rule);
    return begin(family, change, () => ensureRules(owner, family, ours));
  });
}

/** Makes the rules that are missing, in both families. */
export function ensureAll(owner: Owner, cidrs: readonly Cidr[]): void {
  for (const family of families) {
    const ours = ofFamily(cidrs, family);
    if (ours.length > 0) ensureRules(owner, family, ours);
  }
}

function ensureRules(owner: Owner, family: Family, cidrs: readonly Cidr[]): void {
  const { chain, accepts, masquerade, sources } = rulesOf(owner, family, cidrs);
  editTable(family, tableName, (change, table) => {
    if (!table.has(chain)) change.createChain(chain);
    const masquerades = table.hasRule(chain, masquerade);
    // In front of MASQUERADE, which nothing passes.
    for (const rule of accepts) {
      if (table.hasRule(chain, rule)) continue;
      if (masquerades) change.insert(chain, 1, rule);
      else change.append(chain, rule);
    }
    if (!masquerades) change.append(chain, masquerade);
    for (const rule of sources) if (!table.hasRule(hook, rule)) change.append(hook, rule);
  });
}

/** Starts deleting an attachment's rules, taking it that they are as we made them; the wait finds out otherwise. */
export function beginDelete(owner: Owner, cidrs: readonly Cidr[], others: () => readonly Cidr[]): Pending[] {
  return eachFamily(cidrs, (family, ours) => {
    const { chain, sources } = rulesOf(owner, family, ours);
    const change = new TableChange(tableName);
    for (const rule of sources) change.delete(hook, rule);
    change.flush(chain).removeChain(chain); // fails while another interface's rule leads there
    return begin(family, change, () => deleteFound(owner, family, ours, others()));
  });
}

/** The same for several containers in one transaction a family; what isn't as we made it is looked at, once for all. */
export function beginDeleteMany(owners: readonly { owner: Owner; cidrs: readonly Cidr[] }[]): Pending[] {
  return eachFamily(
    owners.flatMap(({ cidrs }) => cidrs),
    (family) => {
      const ours = owners
        .map(({ owner, cidrs }) => ({ owner, cidrs: ofFamily(cidrs, family) }))
        .filter(({ cidrs }) => cidrs.length > 0);
      const change = new TableChange(tableName);
      for (const { owner, cidrs } of ours) {
        const { chain, sources } = rulesOf(owner, family, cidrs);
        for (const rule of sources) change.delete(hook, rule);
        change.flush(chain).removeChain(chain);
      }
      return begin(family, change, () =>
        editTable(family, tableName, (found, table) => {
          for (const { owner, cidrs } of ours) addDeletion(found, table, owner, family, cidrs, []);
        }),
      );
    },
  );
}

/**
 * Deletes what is there of an attachment's rules. Without `cidrs` (undefined) all that lead into the container's chain
 * are, but for those of `others`, the addresses of its other interfaces.
 */
export function deleteFound(
  owner: Owner,
  family: Family,
  cidrs: readonly Cidr[] | undefined,
  others: readonly Cidr[],
): void {
  editTable(family, tableName, (change, table) => addDeletion(change, table, owner, family, cidrs, others));
}

function addDeletion(
  change: TableChange,
  table: Table,
  owner: Owner,
  family: Family,
  cidrs: readonly Cidr[] | undefined,
  others: readonly Cidr[],
): void {
  const chain = chainOf(owner);
  if (!table.has(chain)) return;
  const [ours, kept] = [cidrs, others].map((list) => new Set(list?.map(({ ip }) => ipText(ip))));
  const references = table.references(chain);
  const stale = references.filter(({ rule }) => {
    const source = sourceOf(rule);
    return cidrs === undefined ? source === undefined || !kept!.has(source) : source && ours!.has(source);
  });
  for (const { chain: from, rule } of stale) change.delete(from, rule);
  if (stale.length === references.length) {
    change.flush(chain).removeChain(chain);
    return;
  }
  // The container's other interface lives on, with the subnets that are its own.
  const needed = new Set(ofFamily(others, family).map(subnetText));
  for (const subnet of new Set(ofFamily(cidrs ?? [], family).map(subnetText)))
    if (!needed.has(subnet))
      for (const rule of table.rules(chain)) if (optionOf(rule, "-d") === subnet) change.delete(chain, rule);
}

/** The address of a rule's `-s`; old Go plugins wrote it with the subnet's prefix length. */
function sourceOf(rule: Rule): string | undefined {
  const source = optionOf(rule, "-s");
  const slash = source?.indexOf("/") ?? -1;
  return slash < 0 ? source : source!.slice(0, slash);
}

/** CHECK's part: throws for a rule that is missing. */
export function verify(owner: Owner, cidrs: readonly Cidr[]): void {
  for (const family of families) {
    const ours = ofFamily(cidrs, family);
    if (ours.length === 0) continue;
    const table = readTable(family, tableName);
    const { chain, accepts, masquerade, sources } = rulesOf(owner, family, ours);
    const wanted = [...accepts, masquerade].map((rule) => [chain, rule] as const);
    for (const [where, rule] of [...wanted, ...sources.map((rule) => [hook, rule] as const)])
      if (!table.hasRule(where, rule))
        throw new CniError(
          ErrorCode.Internal,
          `ipMasq: the rule "${rule.slice(0, 4).join(" ")}" is missing from chain ${where} of IPv${family}'s table nat`,
          { details: "cnitool repair puts it back" },
        );
  }
}

/**
 * Removes, in one transaction a family, the rules of a network's containers that are not in the list. Chains are told
 * by the comments of their rules. Returns what it removed.
 */
export function gc(
  network: string,
  validIds: ReadonlySet<string>,
  staleAddresses: (containerId: string) => readonly Cidr[],
): string[] {
  const removed: string[] = [];
  for (const family of families) {
    const found = editTable(family, tableName, (change, table) => {
      const chains: string[] = [];
      for (const [chain, containerId] of containersIn(table, network)) {
        const owner = { network, containerId, ifName: "" };
        const stale = validIds.has(containerId) ? staleAddresses(containerId) : undefined;
        if (stale?.length === 0) continue;
        addDeletion(change, table, owner, family, stale, []);
        chains.push(`iptables chain ${chain} (IPv${family}, container ${containerId})`);
      }
      return chains;
    });
    removed.push(...found);
  }
  return removed;
}

/** The chains of a network's containers, with the container's id. */
function containersIn(table: Table, network: string): [chain: string, containerId: string][] {
  const start = `name: ${JSON.stringify(network)} id: "`;
  const found: [string, string][] = [];
  for (const chain of table.chains) {
    if (!chain.startsWith("CNI-") || chain.length !== 28) continue;
    const rules = [...table.rules(chain), ...table.references(chain).map(({ rule }) => rule)];
    const comment = rules.map((rule) => optionOf(rule, "--comment")).find((text) => text?.startsWith(start));
    const containerId = comment?.slice(start.length, -1);
    if (containerId !== undefined && chainOf({ network, containerId }) === chain)
      found.push([chain, containerId]);
  }
  return found;
}

function eachFamily(
  cidrs: readonly Cidr[],
  work: (family: Family, cidrs: readonly Cidr[]) => Pending,
): Pending[] {
  const pending: Pending[] = [];
  try {
    for (const family of families) {
      const ours = ofFamily(cidrs, family);
      if (ours.length > 0) pending.push(work(family, ours));
    }
  } catch (error) {
    together(pending).wait(); // whoever takes this back must not be overtaken
    throw error;
  }
  return pending;
}

/** Starts a transaction; should the table be otherwise than it takes for granted, `otherwise` does the work. */
function begin(family: Family, change: TableChange, otherwise: () => void): Pending {
  if (change.isEmpty) return nothing;
  const run = startIptables(family, [change]);
  return {
    wait() {
      try {
        run.wait();
      } catch (error) {
        if (!isRefused(error)) throw error;
        otherwise();
      }
    },
  };
}
