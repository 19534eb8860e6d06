import { cidrText, defaultCidr, ipEquals, ipText } from "@tscni/addr";
import { cidrOf, containerLink, mismatch, requirePrevResult } from "@tscni/ip";
import {
  getLink,
  type Link,
  listAddresses,
  listRoutes,
  listRules,
  type Netlink,
  openRoute,
  type Rule,
} from "@tscni/netlink";
import { type Namespace, openNamespace, openNamespaceIfPresent } from "@tscni/ns";
import { attemptAll, type Call, definePlugin } from "@tscni/skel";
import { lockExclusive } from "@tscni/sys";
import { CniError, ErrorCode, messageOf } from "@tscni/types";
import { SbrConf } from "./conf.ts";
import { type Changes, deleteRouteIfPresent, moveRoutes, takeBack, useTable } from "./moves.linux.ts";
import { deleteRuleIfPresent, firstTable, orphanedRules, rulesFrom } from "./rules.linux.ts";
import { ipsOf, type Source, sourcesOf } from "./sources.ts";

type SbrCall = Call<SbrConf>;

/** Source based routing: packets leave a container by the interface whose address they have. */
export default definePlugin({
  name: "sbr",
  about: "routes packets by their source address",
  conf: SbrConf,

  add(call, undo) {
    const { conf, ifName, netns } = call;
    const result = requirePrevResult(call.prevResult);
    const sources = sourcesOf(result, ifName, conf.gateways);
    using sandbox = openNamespace(netns);
    using container = sandbox.enter(openRoute);
    lock(sandbox);
    const done: Changes = { rules: [], added: [], removed: [] };
    undo.defer(() => takeBack(netns, done));
    if (conf.table !== undefined) useTable(container, sources, conf.table, done);
    else moveRoutes(container, containerLink(container, ifName).index, sources, conf.addSourceHints, done);
    return result;
  },

  /** Rules stay when their interface goes, routes don't: so the rules of interfaces that are gone are looked for, too. */
  async del(call) {
    using sandbox = openNamespaceIfPresent(call.netns);
    if (sandbox === undefined) return;
    using container = sandbox.enter(openRoute);
    lock(sandbox);
    const { table } = call.conf;
    const link = getLink(container, { name: call.ifName });
    const rules = listRules(container);
    const ours = rulesFrom(rules, addressesOf(call, container, link), table);
    const orphaned = link || table !== undefined ? [] : orphanedRules(container, rules);
    const unused = link && table === undefined ? routesIn(container, link, ours) : [];
    await attemptAll(
      ...[...new Set([...ours, ...orphaned])].map((rule) => () => deleteRuleIfPresent(container, rule)),
      ...unused.map((route) => () => deleteRouteIfPresent(container, route)),
    );
  },

  check(call) {
    const result = requirePrevResult(call.prevResult);
    const sources = sourcesOf(result, call.ifName, call.conf.gateways);
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);
    const { index } = containerLink(container, call.ifName);
    const rules = listRules(container);
    for (const source of sources) verifySource(container, index, rules, source, call.conf.table);
  },

  /** Ready when the kernel has routing by rules. */
  status() {
    using host = openRoute();
    try {
      listRules(host);
    } catch (error) {
      throw new CniError(ErrorCode.PluginNotAvailable, "this kernel has no routing rules", {
        details: messageOf(error),
      });
    }
  },

  /** Nothing to collect: rules and routes are the container's namespace's, and go with it. */
  gc() {},
});

/**
 * Two of us in one namespace must not take the same table. The reference locks the same file. The lock goes with the
 * namespace's descriptor.
 */
const lock = ({ fd }: Namespace): void => lockExclusive(fd);

/** The addresses that an attachment has, and those that it was given. */
function addressesOf({ prevResult, ifName }: SbrCall, container: Netlink, link: Link | undefined) {
  const present = link ? listAddresses(container, { index: link.index }).map(({ cidr }) => cidr.ip) : [];
  const given = prevResult ? ipsOf(prevResult, ifName).map(({ address }) => cidrOf(address).ip) : [];
  return [...present, ...given];
}

function verifySource(
  container: Netlink,
  index: number,
  rules: readonly Rule[],
  { cidr, gateway }: Source,
  ofTable: number | undefined,
): void {
  const from = ipText(cidr.ip);
  const [rule] = rulesFrom(rules, [cidr.ip], ofTable);
  if (rule?.table === undefined)
    throw mismatch(
      `no rule sends packets from ${from} to ${ofTable === undefined ? "a table" : `table ${ofTable}`}`,
    );
  if (ofTable !== undefined || gateway === undefined) return;
  const whole = cidrText(defaultCidr(gateway.family));
  const routes = listRoutes(container, { family: gateway.family, table: rule.table, index });
  if (!routes.some((r) => cidrText(r.destination) === whole && r.gateway && ipEquals(r.gateway, gateway)))
    throw mismatch(`table ${rule.table} of ${from} has no default route via ${ipText(gateway)}`);
}

/** The routes by a link in the tables of its rules. */
function routesIn(container: Netlink, { index }: Link, rules: readonly Rule[]) {
  const tables = new Set(rules.map(({ table }) => table));
  return listRoutes(container, { index }).filter(({ table = 0 }) => table >= firstTable && tables.has(table));
}
