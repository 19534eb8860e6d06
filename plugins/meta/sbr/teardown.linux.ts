import { cidrOf } from "@tscni/ip";
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
import type { Namespace } from "@tscni/ns";
import { type Recorded, removeRecord } from "@tscni/record";
import { attemptAll, type Call } from "@tscni/skel";
import { lockExclusive } from "@tscni/sys";
import type { SbrConf } from "./conf.ts";
import { deleteRouteIfPresent, deleteRuleIfPresent, firstTable, rulesFrom } from "./rules.linux.ts";
import { ipsOf } from "./sources.ts";
import { kind, openTraced, readTrace, rulesOf, type Trace } from "./trace.linux.ts";

type SbrCall = Call<SbrConf>;

/**
 * Two of us in one namespace must not take the same table. The reference locks the same file. The lock goes with the
 * namespace's descriptor.
 */
export const lock = ({ fd }: Namespace): void => lockExclusive(fd);

/** The steps of a DEL in a namespace that is there. */
export function teardown(call: SbrCall, sandbox: Namespace, container: Netlink): (() => void)[] {
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

/** The addresses that an attachment has, and those that it was given. */
function addressesOf({ prevResult, ifName }: SbrCall, container: Netlink, link: Link | undefined) {
  const present = link ? listAddresses(container, { index: link.index }).map(({ cidr }) => cidr.ip) : [];
  const given = prevResult ? ipsOf(prevResult, ifName).map(({ address }) => cidrOf(address).ip) : [];
  return [...present, ...given];
}

/** Deletes what an ADD without a DEL left in a namespace that is still there. */
export async function collect(
  { data, ...owner }: Recorded<Trace>,
  warn: (message: string) => void,
): Promise<void> {
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

/** All rules and routes of a namespace. */
export const presentIn = (container: Netlink) => ({
  rules: listRules(container),
  routes: listRoutes(container),
});

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
