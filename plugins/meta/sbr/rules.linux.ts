import { bitsOf, type Ip, ipText } from "@tscni/addr";
import { deleteRoute, deleteRule, type Netlink, NetlinkError, type Route, type Rule } from "@tscni/netlink";

/** The first table that may be ours, as in the reference. */
export const firstTable = 100;

/** The rule for packets from one address. */
export const ruleOf = (ip: Ip, table: number): Rule => ({
  family: ip.family,
  source: { ip, prefix: bitsOf(ip.family) },
  table,
});

/** Whether a rule is for packets from one address, and its table may be ours. */
const isOurs = ({ source, table = 0 }: Rule, ofTable: number | undefined): boolean =>
  source !== undefined &&
  source.prefix === bitsOf(source.ip.family) &&
  (ofTable === undefined ? table >= firstTable : table === ofTable);

/** The rules for packets from some addresses; of one table when that is given. */
export function rulesFrom(rules: readonly Rule[], ips: readonly Ip[], ofTable: number | undefined): Rule[] {
  const texts = new Set(ips.map(ipText));
  return rules.filter((rule) => isOurs(rule, ofTable) && texts.has(ipText(rule.source!.ip)));
}

/** Tables that neither rules nor routes know, from the first that may be ours on; there are four billion. */
export function* freeTables(rules: readonly Rule[], routes: readonly Route[]): Generator<number, never> {
  const used = new Set([...rules.map(({ table }) => table), ...routes.map(({ table }) => table)]);
  for (let table = firstTable; ; table++) if (!used.has(table)) yield table;
}

/** Deletes a rule that was listed; it being gone is fine. */
export function deleteRuleIfPresent(container: Netlink, rule: Rule): void {
  try {
    deleteRule(container, rule);
  } catch (error) {
    if (!(error instanceof NetlinkError && error.code === "ENOENT")) throw error;
  }
}

/** Deletes a route; it being gone is fine. */
export function deleteRouteIfPresent(container: Netlink, route: Route): void {
  try {
    deleteRoute(container, route);
  } catch (error) {
    if (!(error instanceof NetlinkError && error.code === "ESRCH")) throw error;
  }
}
