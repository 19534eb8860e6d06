import { cidrText } from "@tscni/addr";
import {
  type Address,
  addAddress,
  addRoute,
  IFA_F_NODAD,
  IFA_F_NOPREFIXROUTE,
  type Link,
  listAddresses,
  listRoutes,
  type Netlink,
  NetlinkError,
  type Route,
  RT_TABLE_LOCAL,
  RT_TABLE_MAIN,
  setLink,
} from "@tscni/netlink";
import type { Vrf } from "./vrf.linux.ts";

// RTPROT_*, linux/rtnetlink.h
const [byKernel, byRouterAdvertisement] = [2, 9];

/**
 * What an interface loses when it gets another master: IPv6 addresses, and routes of any table. One of several next
 * hops belongs to the others, too, and stays.
 */
export interface Belongings {
  addresses: Address[];
  routes: Route[];
}

export const belongingsOf = (container: Netlink, { index }: Link): Belongings => ({
  addresses: listAddresses(container, { index, family: 6 }).filter(({ scope }) => scope === 0),
  routes: listRoutes(container, { index }).filter((route) => route.index === index && isOwn(route)),
});

/** Makes a VRF the master of an interface, which takes along what it has. */
export function moveToVrf(container: Netlink, link: Link, vrf: Vrf, belongings: Belongings): void {
  setLink(container, { index: link.index }, { master: vrf.index });
  restore(container, link, belongings, { from: RT_TABLE_MAIN, to: vrf.table });
}

/** The reverse. */
export function moveToMain(container: Netlink, link: Link, vrf: Vrf, belongings: Belongings): void {
  setLink(container, { index: link.index }, { master: 0 });
  restore(container, link, belongings, { from: vrf.table, to: RT_TABLE_MAIN });
}

/**
 * A new master takes the link down and up again (cycle_netdev in drivers/net/vrf.c), which costs it every route
 * that the kernel did not make, and its IPv6 addresses unless keep_addr_on_down is set.
 */
function restore(
  container: Netlink,
  { index }: Link,
  { addresses, routes }: Belongings,
  table: { from: number; to: number },
): void {
  const kept = new Set(listAddresses(container, { index, family: 6 }).map(({ cidr }) => cidrText(cidr)));
  for (const { cidr, flags = 0 } of addresses.filter((address) => !kept.has(cidrText(address.cidr)))) {
    const same = (flags & IFA_F_NOPREFIXROUTE) | IFA_F_NODAD;
    unlessThere(() => addAddress(container, { index, cidr, flags: same }));
  }
  // What a gateway is reached by comes before the routes through it.
  for (const route of [...routes.filter((r) => !hasGateway(r)), ...routes.filter(hasGateway)]) {
    const moved = route.table === table.from ? { ...route, table: table.to } : route;
    unlessThere(() => addRoute(container, moved, "append"));
  }
}

const hasGateway = ({ gateway }: Route): boolean => gateway !== undefined;

/** Those that somebody added: the kernel's own follow addresses and link, a router's it hears of again. */
const isOwn = ({ protocol, table }: Route): boolean =>
  table !== RT_TABLE_LOCAL && protocol !== byKernel && protocol !== byRouterAdvertisement;

function unlessThere(add: () => void): void {
  try {
    add();
  } catch (error) {
    if (!(error instanceof NetlinkError && error.code === "EEXIST")) throw error;
  }
}
