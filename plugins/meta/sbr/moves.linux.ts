import { type Cidr, cidrContains, cidrText, defaultCidr, networkOf } from "@tscni/addr";
import {
  addRoute,
  addRule,
  deleteRoute,
  listRoutes,
  listRules,
  type Netlink,
  NetlinkError,
  openRoute,
  type Route,
  RT_TABLE_MAIN,
  type Rule,
} from "@tscni/netlink";
import { openNamespaceIfPresent } from "@tscni/ns";
import { joinErrors } from "@tscni/types";
import { deleteRuleIfPresent, freeTables, ruleOf } from "./rules.linux.ts";
import type { Source } from "./sources.ts";

/** What an ADD has changed in the container so far. */
export interface Changes {
  rules: Rule[];
  added: Route[];
  removed: Route[];
}

/** Has packets from each address look into a table that somebody else fills. */
export function useTable(container: Netlink, sources: readonly Source[], table: number, done: Changes): void {
  for (const { cidr } of sources) tryRule(container, ruleOf(cidr.ip, table), done);
}

/**
 * Gives each address a table of its own, with the routes of the interface that are its family's and go with it, and
 * takes these out of the main table. With `hints` the subnets' routes stay there and name the address.
 */
export function moveRoutes(
  container: Netlink,
  index: number,
  sources: readonly Source[],
  hints: boolean,
  done: Changes,
): void {
  const present = listRoutes(container);
  const own = present.filter((r) => r.table === RT_TABLE_MAIN && r.index === index);
  const tables = freeTables(listRules(container), present);
  for (const source of sources) {
    const table = tables.next().value;
    tryRule(container, ruleOf(source.cidr.ip, table), done);
    for (const route of routesFor(source, own, index, hints)) tryRoute(container, { ...route, table }, done);
  }
  for (const route of own.filter((r) => !isLinkLocal(r) && !(hints && r.gateway === undefined)))
    tryRemoval(container, route, done);
  if (hints) for (const source of sources) addHints(container, source, own, done);
}

/** The routes that packets from an address need: those to subnets first, over which the others' gateways are. */
function routesFor({ cidr, gateway }: Source, own: readonly Route[], index: number, hints: boolean): Route[] {
  const { family } = cidr.ip;
  const copied = own
    .filter(({ destination }) => destination.ip.family === family)
    .filter((route) => goesWith(route, cidr))
    .map((route) => (hints ? { ...route, preferredSource: route.preferredSource ?? cidr.ip } : route));
  const wanted = gateway && { destination: defaultCidr(family), gateway, index };
  return [...copied.filter(isDirect), ...copied.filter((r) => !isDirect(r)), ...(wanted ? [wanted] : [])];
}

/** Whether a route names an address or a gateway of the subnet, or neither. */
function goesWith({ preferredSource, gateway }: Route, subnet: Cidr): boolean {
  if (preferredSource === undefined && gateway === undefined) return true;
  return [preferredSource, gateway].some((ip) => ip && cidrContains(subnet, ip));
}

const isDirect = ({ gateway }: Route): boolean => gateway === undefined;

/** Every interface has fe80::/64, for neighbours alone: it serves link-local sources, too, so it stays. */
const isLinkLocal = ({ destination: { ip } }: Route): boolean =>
  ip.family === 6 && ip.value >> 118n === 0x3fan;

function addHints(container: Netlink, { cidr }: Source, own: readonly Route[], done: Changes): void {
  const subnet = cidrText(networkOf(cidr));
  for (const route of own) {
    if (!isDirect(route) || route.preferredSource || cidrText(route.destination) !== subnet) continue;
    addRoute(container, { ...route, preferredSource: cidr.ip }, "replace");
    done.removed.push(route);
  }
}

function tryRule(container: Netlink, rule: Rule, done: Changes): void {
  addRule(container, rule);
  done.rules.push(rule);
}

function tryRoute(container: Netlink, route: Route, done: Changes): void {
  // A default route may be there twice: among those of the interface, and as the gateway that was asked for.
  addRoute(container, route, "replace");
  done.added.push(route);
}

function tryRemoval(container: Netlink, route: Route, done: Changes): void {
  deleteRoute(container, route);
  done.removed.push(route);
}

/** Undoes the changes, as far as the namespace is still there. Throws CniError with all that can't be undone. */
export function takeBack(netns: string, { rules, added, removed }: Changes): void {
  using sandbox = openNamespaceIfPresent(netns);
  if (sandbox === undefined) return;
  using container = sandbox.enter(openRoute);
  const errors: unknown[] = [];
  const attempt = (work: () => void) => {
    try {
      work();
    } catch (error) {
      errors.push(error);
    }
  };
  const inOrder = [...removed.filter(isDirect), ...removed.filter((route) => !isDirect(route))];
  for (const route of inOrder) attempt(() => addRoute(container, route, "replace"));
  for (const rule of rules) attempt(() => deleteRuleIfPresent(container, rule));
  for (const route of added) attempt(() => deleteRouteIfPresent(container, route));
  const joined = joinErrors(errors);
  if (joined) throw joined;
}

/** Deletes a route; it being gone is fine. */
export function deleteRouteIfPresent(container: Netlink, route: Route): void {
  try {
    deleteRoute(container, route);
  } catch (error) {
    if (!(error instanceof NetlinkError && error.code === "ESRCH")) throw error;
  }
}
