import { mismatch } from "@tscni/ip";
import {
  editTable,
  editTables,
  type Family,
  isRefused,
  optionOf,
  type Rule,
  readTable,
  ruleKey,
  runChanges,
  type Table,
  TableChange,
  type TableEdit,
} from "@tscni/iptables";
import { familiesOf, ofFamily, type Policy, type Wanted, withPrefix } from "./protection.ts";
import * as rules from "./rules.ts";

const filter = "filter";

/** Which part of what is wanted the rules are for: with firewalld, the policy alone. */
export interface Part {
  addresses: boolean;
  policy: boolean;
}

/**
 * Adds what is missing of an attachment's rules: each family's table is read once, then one transaction each. Throws
 * IptablesError; one that says that iptables is unusable here comes before anything was done.
 */
export function addRules(wanted: Wanted, part: Part, lock: number): void {
  const edit = ({ family, table, change }: TableEdit) => {
    if (part.addresses) addAddresses(change, table, ofFamily(wanted.addresses, family), wanted.adminChain);
    if (part.policy && wanted.policy) addPolicy(change, table, wanted.policy);
  };
  editTables(familiesOf(wanted.addresses), filter, (tables) => tables.forEach(edit), lock);
}

function addAddresses(change: TableChange, table: Table, addresses: readonly string[], admin: string): void {
  for (const chain of [rules.forwardChain, admin]) if (!table.has(chain)) change.createChain(chain);
  // Behind the isolation chains, if they are there, whose drops count only before anything is accepted.
  const position = positionOf(table, rules.jumpToStage1) + 2;
  if (!table.hasRule("FORWARD", rules.jumpToForward))
    change.insert("FORWARD", Math.max(position, 1), rules.jumpToForward);
  if (!table.hasRule(rules.forwardChain, rules.jumpToAdmin(admin)))
    change.insert(rules.forwardChain, 1, rules.jumpToAdmin(admin));
  for (const address of addresses)
    for (const rule of rules.addressRules(address))
      if (timesIn(table, address, rule) === 0) change.append(rules.forwardChain, rule);
}

function addPolicy(change: TableChange, table: Table, policy: Policy): void {
  for (const chain of [rules.stage1, rules.stage2]) if (!table.has(chain)) change.createChain(chain);
  if (!precedes(table)) {
    if (table.hasRule("FORWARD", rules.jumpToStage1)) change.delete("FORWARD", rules.jumpToStage1);
    change.insert("FORWARD", 1, rules.jumpToStage1);
  }
  const prepend = (chain: string, rule: Rule) => {
    if (!table.hasRule(chain, rule)) change.insert(chain, 1, rule);
  };
  for (const rule of rules.stage1Rules(policy)) prepend(rules.stage1, rule);
  prepend(rules.stage2, rules.stage2Rule(policy));
  for (const chain of [rules.stage1, rules.stage2])
    if (!table.hasRule(chain, rules.stageReturn)) change.append(chain, rules.stageReturn);
}

/** Where a rule is in FORWARD, 0 being the first; -1 when it is not there. */
function positionOf(table: Table, rule: Rule): number {
  const key = ruleKey(rule);
  return table.rules("FORWARD").findIndex((each) => ruleKey(each) === key);
}

/** Whether the isolation chains come before what accepts. */
function precedes(table: Table): boolean {
  const [isolation, accepting] = [
    positionOf(table, rules.jumpToStage1),
    positionOf(table, rules.jumpToForward),
  ];
  return isolation >= 0 && (accepting < 0 || isolation < accepting);
}

/**
 * Removes the rules of some addresses, one transaction a family; what is not there is no error. The chains stay, and
 * so do the rules of policies, as the reference leaves them: others may use them. Throws IptablesError.
 */
export function deleteRules(addresses: readonly string[], lock: number): void {
  const ofEach = familiesOf(addresses).map((family) => ({ family, addresses: ofFamily(addresses, family) }));
  try {
    // As a rule all of them are there; looking first would cost a process each.
    runChanges(
      ofEach.map((each) => {
        const change = new TableChange(filter);
        addDeletions(change, each.addresses);
        return { family: each.family, change };
      }),
      lock,
    );
  } catch (error) {
    if (!isRefused(error)) throw error;
    for (const each of ofEach)
      editTable(each.family, filter, (change, table) => addDeletions(change, each.addresses, table), lock);
  }
}

/** Removes the rules of bridges that are gone, which nobody can be kept apart by. Throws IptablesError. */
export function deleteBridgeRules(bridges: readonly string[], family: Family, lock: number): void {
  const isTheirs = (rule: Rule) =>
    bridges.some((bridge) => optionOf(rule, "-i") === bridge || optionOf(rule, "-o") === bridge);
  const edit = (change: TableChange, table: Table) => {
    for (const chain of [rules.stage1, rules.stage2])
      for (const rule of table.rules(chain)) if (isTheirs(rule)) change.delete(chain, rule);
  };
  editTable(family, filter, edit, lock);
}

function addDeletions(change: TableChange, addresses: readonly string[], table?: Table): void {
  for (const address of addresses)
    for (const rule of rules.addressRules(address)) {
      const times = table === undefined ? 1 : timesIn(table, address, rule);
      for (let i = 0; i < times; i++) change.delete(rules.forwardChain, rule);
    }
}

/** How often a rule of an address is in CNI-FORWARD. */
function timesIn(table: Table, address: string, rule: Rule): number {
  const key = ruleKey(rule);
  const candidates = table.rulesWith(rules.forwardChain, ` ${withPrefix(address)} `);
  return candidates.filter((each) => ruleKey(each) === key).length;
}

/** CHECK's part: throws CniError naming the first rule that is missing or in the wrong place. Changes nothing. */
export function verifyRules(wanted: Wanted, part: Part): void {
  for (const family of familiesOf(wanted.addresses)) {
    const table = readTable(family, filter);
    const lacks = (chain: string, rule: Rule) =>
      mismatch(`${chain} of ${family === 4 ? "iptables" : "ip6tables"} lacks the rule ${rule.join(" ")}`);
    for (const [chain, rule] of sharedRules(wanted, part))
      if (!table.hasRule(chain, rule)) throw lacks(chain, rule);
    if (part.policy && wanted.policy && !precedes(table))
      throw mismatch(`FORWARD has ${rules.forwardChain} in front of ${rules.stage1}`);
    if (!part.addresses) continue;
    for (const address of ofFamily(wanted.addresses, family))
      for (const rule of rules.addressRules(address))
        if (timesIn(table, address, rule) === 0) throw lacks(rules.forwardChain, rule);
  }
}

/** The rules that an attachment needs and others may need, too. */
function sharedRules({ adminChain, policy }: Wanted, part: Part): [chain: string, rule: Rule][] {
  const found: [string, Rule][] = [];
  if (part.addresses)
    found.push(["FORWARD", rules.jumpToForward], [rules.forwardChain, rules.jumpToAdmin(adminChain)]);
  if (!part.policy || policy === undefined) return found;
  found.push(["FORWARD", rules.jumpToStage1]);
  for (const rule of rules.stage1Rules(policy)) found.push([rules.stage1, rule]);
  found.push([rules.stage2, rules.stage2Rule(policy)]);
  return found;
}

/** Throws IptablesError when neither iptables nor ip6tables can be used. */
export function verifyUsable(): void {
  try {
    readTable(4, filter);
  } catch (error) {
    try {
      readTable(6, filter);
    } catch {
      throw error;
    }
  }
}
