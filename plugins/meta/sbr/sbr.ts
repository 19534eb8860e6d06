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
  type Route,
  type Rule,
} from "@tscni/netlink";
import { type Namespace, openNamespace, openNamespaceIfPresent } from "@tscni/ns";
import { type Recorded, removeRecord, staleRecords } from "@tscni/record";
import { attemptAll, type Call, definePlugin } from "@tscni/skel";
import { lockExclusive } from "@tscni/sys";
import { CniError, ErrorCode, messageOf } from "@tscni/types";
import { apply, nothingDone, takeBack } from "./apply.linux.ts";
import { SbrConf } from "./conf.ts";
import { planOfMove, planOfTable } from "./plan.ts";
import { deleteRouteIfPresent, deleteRuleIfPresent, firstTable, rulesFrom } from "./rules.linux.ts";
import { ipsOf, type Source, sourcesOf } from "./sources.ts";
import { kind, openTraced, readTrace, rulesOf, type Trace, writeTrace } from "./trace.linux.ts";

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
    const { index } = containerLink(container, ifName);
    const plan =
      conf.table === undefined
        ? planOfMove(sources, index, presentIn(container), conf.addSourceHints)
        : planOfTable(sources, conf.table);
    undo.defer(() => void removeRecord(kind, call));
    writeTrace(call, sandbox, plan.rules, conf.table === undefined);
    const done = nothingDone();
    undo.defer(() => takeBack(netns, done));
    apply(container, plan, done);
    return result;
  },

  /** Routes go with their interface, rules don't: those of the ADD are deleted, and those of the interface's addresses. */
  async del(call) {
    using sandbox = openNamespaceIfPresent(call.netns);
    using container = sandbox?.enter(openRoute);
    const work = sandbox && container ? teardown(call, sandbox, container) : [];
    await attemptAll(...work, () => void removeRecord(kind, call));
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

  /** Of containers that are still there: rules and routes go with their namespace. */
  async gc({ network, validAttachments, warn }) {
    if (validAttachments === undefined) return;
    const stale = staleRecords<Trace>(kind, network, validAttachments, warn);
    await attemptAll(...stale.map((record) => () => collect(record, warn)));
  },
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

/** The steps of a DEL in a namespace that is there. */
function teardown(call: SbrCall, sandbox: Namespace, container: Netlink): (() => void)[] {
  lock(sandbox);
  const link = getLink(container, { name: call.ifName });
  const { rules, routes } = presentIn(container);
  const { table } = call.conf;
  const byAddress = rulesFrom(rules, addressesOf(call, container, link), table);
  const byTrace = rulesOf(readTrace(call, sandbox, call.warn), rules);
  const ours = [...new Set([...byAddress, ...byTrace])];
  const unused = link && table === undefined ? routesIn(routes, ours, link.index) : [];
  return deletions(container, ours, unused);
}

/** Deletes what an ADD without a DEL left in a namespace that is still there. */
async function collect({ data, ...owner }: Recorded<Trace>, warn: (message: string) => void): Promise<void> {
  using sandbox = data && openTraced(data);
  if (data && sandbox) {
    using container = sandbox.enter(openRoute);
    lock(sandbox);
    const { rules, routes } = presentIn(container);
    const ours = rulesOf(data, rules);
    await attemptAll(...deletions(container, ours, data.ownTables ? routesIn(routes, ours) : []));
    if (ours.length > 0)
      warn(`gc: removed ${ours.length} rules of ${owner.containerId} ${owner.ifName} from ${data.netns}`);
  }
  removeRecord(kind, owner);
}

const presentIn = (container: Netlink) => ({ rules: listRules(container), routes: listRoutes(container) });

const deletions = (container: Netlink, rules: readonly Rule[], routes: readonly Route[]): (() => void)[] => [
  ...rules.map((rule) => () => deleteRuleIfPresent(container, rule)),
  ...routes.map((route) => () => deleteRouteIfPresent(container, route)),
];

/** The routes in the tables of rules, by one link when it is given. */
function routesIn(routes: readonly Route[], rules: readonly Rule[], index?: number): Route[] {
  const tables = new Set(rules.map(({ table }) => table));
  return routes.filter(
    ({ table = 0, ...route }) =>
      table >= firstTable && tables.has(table) && (index === undefined || route.index === index),
  );
}
