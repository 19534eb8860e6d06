import {
  editTable,
  type Family,
  mayHaveChain,
  optionOf,
  type Rule,
  ruleKey,
  type Table,
  type TableChange,
} from "@tscni/iptables";
import { openNetfilter } from "@tscni/netlink";
import { groupsOf, hostportChain, type SharedRule, sameRules } from "./iptables-layout.ts";
import { heldLock } from "./lock.linux.ts";
import type { Entry } from "./publication.ts";

/** The table that everything is in. */
export const nat = "nat";

/** The rules that lead to a container's chain. */
export const entriesInto = (table: Table, chain: string): Rule[] =>
  table
    .references(chain)
    .filter((reference) => reference.chain === hostportChain)
    .map(({ rule }) => rule);

/** Adds what is missing of what all containers share: no rule twice, whatever was flushed. */
export function ensureShared(change: TableChange, table: Table, rules: readonly SharedRule[]): void {
  const chains = new Set([hostportChain, ...rules.map(({ chain }) => chain)]);
  for (const chain of chains) if (chain.startsWith("CNI-") && !table.has(chain)) change.createChain(chain);
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
export function editChain(
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

/** What goes of a container's chain: ports that lead to these addresses, or everything. */
export type Removal = ReadonlySet<string> | "all";

/** Removes chains, or parts of them, in one transaction. Returns which of them there were. */
export function removeChains(family: Family, removals: (table: Table) => Map<string, Removal>): string[] {
  const edit = (change: TableChange, table: Table) => {
    const found = [...removals(table)].filter(([chain]) => table.has(chain));
    for (const [chain, removal] of found)
      if (removal === "all") removeChain(change, table, chain);
      else editChain(change, table, chain, { drop: removal });
    return found.map(([chain]) => chain);
  };
  return editTable(family, nat, edit, heldLock());
}

/** Whether a chain is, or may be, there. Starts no process. */
export function mayBeThere(family: Family, chain: string): boolean {
  using netfilter = openNetfilter();
  return mayHaveChain(netfilter, family, nat, chain);
}
