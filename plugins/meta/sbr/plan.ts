import { type Cidr, cidrContains, cidrText, defaultCidr, networkOf } from "@tscni/addr";
import { type Route, RT_TABLE_MAIN, type Rule } from "@tscni/netlink";
import { freeTables, ruleOf } from "./rules.linux.ts";
import type { Source } from "./sources.ts";

/** What an ADD does, in this order. */
export interface Plan {
  rules: Rule[];
  /** To the tables of the rules. */
  added: Route[];
  /** From the main table. */
  removed: Route[];
  /** In the main table, as they are to be. */
  changed: { from: Route; to: Route }[];
}

/** Packets from each address look into a table that somebody else fills. */
export const planOfTable = (sources: readonly Source[], table: number): Plan => ({
  rules: sources.map(({ cidr }) => ruleOf(cidr.ip, table)),
  added: [],
  removed: [],
  changed: [],
});

/**
 * Each address gets a table of its own, with the routes of the interface (number `index`) that are its family's and go
 * with it, and these leave the main table. With `hints` the subnets' routes stay there and name the address.
 */
export function planOfMove(
  sources: readonly Source[],
  index: number,
  present: { rules: readonly Rule[]; routes: readonly Route[] },
  hints: boolean,
): Plan {
  const own = present.routes.filter((r) => r.table === RT_TABLE_MAIN && r.index === index);
  const tables = freeTables(present.rules, present.routes);
  const plan: Plan = { rules: [], added: [], removed: [], changed: [] };
  for (const source of sources) {
    const table = tables.next().value;
    plan.rules.push(ruleOf(source.cidr.ip, table));
    plan.added.push(...routesFor(source, own, index, hints).map((route) => ({ ...route, table })));
    if (hints) plan.changed.push(...hintsFor(source, own));
  }
  plan.removed = own.filter((route) => !isLinkLocal(route) && !(hints && isDirect(route)));
  return plan;
}

/** The routes that packets from an address need: those to subnets first, over which the others' gateways are. */
function routesFor({ cidr, gateway }: Source, own: readonly Route[], index: number, hints: boolean): Route[] {
  const { ip } = cidr;
  const copied = own
    .filter((route) => route.destination.ip.family === ip.family && goesWith(route, cidr))
    .map((route) => (hints ? { ...route, preferredSource: route.preferredSource ?? ip } : route));
  const wanted = gateway ? [{ destination: defaultCidr(ip.family), gateway, index }] : [];
  return [...directFirst(copied), ...wanted];
}

/** Whether a route names an address or a gateway of the subnet, or neither. */
function goesWith({ preferredSource, gateway }: Route, subnet: Cidr): boolean {
  if (preferredSource === undefined && gateway === undefined) return true;
  return [preferredSource, gateway].some((ip) => ip && cidrContains(subnet, ip));
}

const isDirect = ({ gateway }: Route): boolean => gateway === undefined;

/** In an order in which they can be added: a gateway has to be on a subnet that there is a route to. */
export const directFirst = (routes: readonly Route[]): Route[] => [
  ...routes.filter(isDirect),
  ...routes.filter((route) => !isDirect(route)),
];

/** Every interface has fe80::/64, for neighbours alone: it serves link-local sources, too, so it stays. */
const isLinkLocal = ({ destination: { ip } }: Route): boolean =>
  ip.family === 6 && ip.value >> 118n === 0x3fan;

function hintsFor({ cidr }: Source, own: readonly Route[]): Plan["changed"] {
  const subnet = cidrText(networkOf(cidr));
  return own
    .filter((r) => isDirect(r) && !r.preferredSource && cidrText(r.destination) === subnet)
    .map((from) => ({ from, to: { ...from, preferredSource: cidr.ip } }));
}
