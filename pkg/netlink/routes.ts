import { bitsOf, type Cidr, cidrText, type Ip, ipText } from "@tscni/addr";
import type { ValueOf } from "./codecs.ts";
import { NetlinkError } from "./error.ts";
import { type Family, numberOf } from "./families.ts";
import { NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE } from "./flags.ts";
import type { MessageOf, Requester } from "./message.ts";
import type { Netlink } from "./netlink.ts";
import { routeFormat } from "./tables/route.ts";

// linux/rtnetlink.h
export const RT_TABLE_MAIN = 254;
export const RT_TABLE_LOCAL = 255;
export const RT_SCOPE_UNIVERSE = 0;
export const RT_SCOPE_LINK = 253;
export const RT_SCOPE_HOST = 254;
const RT_SCOPE_NOWHERE = 255;
const RTPROT_BOOT = 3;
export const RTN_UNICAST = 1;
const RTNH_F_ONLINK = 4;

type RouteAttributes = ValueOf<typeof routeFormat.attributes>;

/** One of several ways that a route goes. */
export interface NextHop {
  /** The link's index. */
  index?: number | undefined;
  gateway?: Ip | undefined;
  onlink?: boolean | undefined;
  /** 1 to 256; 1 by default. */
  weight?: number | undefined;
}

export interface Route extends NextHop {
  /** What it leads to; a default route's is 0.0.0.0/0 or ::/0. */
  destination: Cidr;
  /** 254, the main table, by default. */
  table?: number | undefined;
  /** The metric. IPv6 makes it 1024 when it is absent or 0. */
  priority?: number | undefined;
  /** RT_SCOPE_*; IPv6 has only 0. */
  scope?: number | undefined;
  /** RTPROT_*, who made it: boot (3) by default. */
  protocol?: number | undefined;
  /** RTN_*: unicast (1) by default. */
  type?: number | undefined;
  /** The source address that packets get by default. */
  preferredSource?: Ip | undefined;
  /** mtu and advmss in bytes. */
  metrics?: RouteAttributes["metrics"];
  /** When there are several; then `index` and `gateway` are absent. */
  nextHops?: NextHop[] | undefined;
}

/** What `ip route` calls add, append, prepend and replace. */
export type RouteMode = keyof typeof modes;
const modes = {
  /** Fails with EEXIST when there is a route to the destination with this table and priority. */
  add: NLM_F_CREATE | NLM_F_EXCL,
  /** Behind those that are there. */
  append: NLM_F_CREATE | NLM_F_APPEND,
  /** In front of those that are there. */
  prepend: NLM_F_CREATE,
  replace: NLM_F_CREATE | NLM_F_REPLACE,
} as const;

/** Adds a route. Throws NetlinkError: EEXIST, ENETUNREACH (gateway not on a connected network), ENODEV. */
export function addRoute(requests: Requester, route: Route, mode: RouteMode = "add"): void {
  const header = {
    ...headerOf(route),
    scope: route.scope ?? RT_SCOPE_UNIVERSE,
    protocol: route.protocol ?? RTPROT_BOOT,
    type: route.type ?? RTN_UNICAST,
  };
  requests.request(routeFormat, "NEW", modes[mode], header, attributesOf(route), labelOf(route));
}

/**
 * Deletes the first route that is like this one: what is absent may be anything, except that the table is main.
 * Throws NetlinkError ESRCH when there is none.
 */
export function deleteRoute(requests: Requester, route: Route): void {
  const header = {
    ...headerOf(route),
    scope: route.scope ?? RT_SCOPE_NOWHERE,
    protocol: route.protocol ?? 0,
    type: route.type ?? 0,
  };
  requests.request(routeFormat, "DEL", 0, header, attributesOf(route), labelOf(route));
}

function headerOf({ destination, table = RT_TABLE_MAIN, onlink }: Route) {
  return {
    family: numberOf(destination.ip.family),
    destinationPrefix: destination.prefix,
    table: table < 256 ? table : 0,
    flags: onlink ? RTNH_F_ONLINK : 0,
  };
}

function attributesOf(route: Route): RouteAttributes {
  const { destination, table = RT_TABLE_MAIN } = route;
  return {
    destination: destination.prefix === 0 ? undefined : destination.ip,
    ...gatewayOf(route, destination.ip.family),
    outIndex: route.index,
    priority: route.priority,
    preferredSource: route.preferredSource,
    metrics: route.metrics,
    table: table < 256 ? undefined : table,
    nextHops: route.nextHops?.map((hop) => ({
      flags: hop.onlink ? RTNH_F_ONLINK : 0,
      hops: (hop.weight ?? 1) - 1,
      index: hop.index ?? 0,
      ...gatewayOf(hop, destination.ip.family),
    })),
  };
}

const gatewayOf = ({ gateway }: NextHop, family: Family) =>
  gateway === undefined || gateway.family === family ? { gateway } : { via: gateway };

const labelOf = ({ destination, gateway, table }: Route): string =>
  cidrText(destination) +
  (gateway === undefined ? "" : ` via ${ipText(gateway)}`) +
  (table === undefined || table === RT_TABLE_MAIN ? "" : ` table ${table}`);

/** RTN_LOCAL: an address of the host's own. */
export const RTN_LOCAL = 2;

/**
 * The way that a packet to an address takes, as `ip route get` says, if it is to take the link with the index. Throws
 * NetlinkError ENETUNREACH without one.
 */
export function getRoute(netlink: Netlink, destination: Ip, outIndex?: number): Route {
  const header = { family: numberOf(destination.family), destinationPrefix: bitsOf(destination.family) };
  const message = netlink.get(routeFormat, header, { destination, outIndex }, ipText(destination));
  return routeOf(message, destination.family);
}

export interface RouteFilter {
  family?: Family;
  table?: number;
  /** The link's index; routes of several next hops when one goes by it. */
  index?: number;
}

/** Routes of every table and type, or those that the filter lets through. */
export function listRoutes(netlink: Netlink, filter: RouteFilter = {}): Route[] {
  const families: Family[] = filter.family === undefined ? [4, 6] : [filter.family];
  return families.flatMap((family) => dumpRoutes(netlink, family, filter)).filter(matcherOf(filter));
}

function dumpRoutes(netlink: Netlink, family: Family, { table, index }: RouteFilter): Route[] {
  try {
    return netlink
      .dump(routeFormat, { family: numberOf(family) }, { table, outIndex: index }, "routes")
      .map((message) => routeOf(message, family));
  } catch (error) {
    // A strictly checking kernel says so of a table that nobody has put a route into yet.
    if (error instanceof NetlinkError && table !== undefined && error.code === "ENOENT") return [];
    throw error;
  }
}

const matcherOf =
  ({ table, index }: RouteFilter) =>
  (route: Route): boolean =>
    (table === undefined || route.table === table) &&
    (index === undefined || route.index === index || !!route.nextHops?.some((hop) => hop.index === index));

function routeOf({ header, attributes }: MessageOf<typeof routeFormat>, family: Family): Route {
  const { destination = { family, value: 0n }, gateway, via, nextHops } = attributes;
  return {
    destination: { ip: destination, prefix: header.destinationPrefix },
    gateway: gateway ?? via,
    index: attributes.outIndex,
    onlink: (header.flags & RTNH_F_ONLINK) !== 0,
    table: attributes.table ?? header.table,
    priority: attributes.priority,
    scope: header.scope,
    protocol: header.protocol,
    type: header.type,
    preferredSource: attributes.preferredSource,
    metrics: attributes.metrics,
    nextHops: nextHops?.map((hop) => ({
      index: hop.index,
      gateway: hop.gateway ?? hop.via,
      onlink: ((hop.flags ?? 0) & RTNH_F_ONLINK) !== 0,
      weight: (hop.hops ?? 0) + 1,
    })),
  };
}
