import { type Cidr, ipText, lastIpOf, networkOf, parseCidr, parseIp } from "@tscni/addr";
import {
  addAddress,
  addRoute,
  IFA_F_NODAD,
  type Route as KernelRoute,
  type Netlink,
  NetlinkError,
  setLink,
} from "@tscni/netlink";
import { CniError, ErrorCode, messageOf, type Result, type Route } from "@tscni/types";
import { ensureSysctl, writeSysctlIfPresent } from "./sysctl.linux.ts";

/** Whether a result has an IPv6 address. */
export const hasIpv6 = (result: Result): boolean => result.ips.some(({ address }) => address.includes(":"));

/**
 * The sysctls of a container interface that is about to get addresses, to be set before it is up. With IPAM
 * the addresses are all that it shall have, so it refuses router advertisements. Call it inside the namespace.
 */
export function prepareInterface(ifName: string, lease: Result): void {
  writeSysctlIfPresent(`net/ipv6/conf/${ifName}/accept_ra`, "0");
  if (!hasIpv6(lease)) return;
  for (const name of ["lo", ifName]) ensureSysctl(`net/ipv6/conf/${name}/disable_ipv6`, "0");
  ensureSysctl(`net/ipv6/conf/${ifName}/keep_addr_on_down`, "1");
}

/**
 * Gives an interface the addresses of a lease, brings it up and adds the routes. Addresses that IPAM handed
 * out are ours alone, so they are used without duplicate address detection unless `detectDuplicates`.
 */
export function configureInterface(
  netlink: Netlink,
  index: number,
  lease: Result,
  options: { detectDuplicates?: boolean } = {},
): void {
  const flags = options.detectDuplicates ? 0 : IFA_F_NODAD;
  for (const { address } of lease.ips) assignAddress(netlink, index, cidrOf(address), flags);
  setLink(netlink, { index }, { up: true });
  addRoutes(netlink, index, lease);
}

/** Adds the routes of a lease. Throws CniError, which says of those that the kernel refuses what is wrong with them. */
export function addRoutes(netlink: Netlink, index: number, lease: Result): void {
  for (const route of lease.routes) {
    const wanted = routeOf(route, lease);
    try {
      addRoute(netlink, { ...wanted, index }, "append");
    } catch (error) {
      const why = error instanceof NetlinkError ? refusals[error.code] : undefined;
      if (why === undefined) throw error;
      const via = wanted.gateway ? ` via ${ipText(wanted.gateway)}` : "";
      throw new CniError(ErrorCode.Internal, `route ${route.dst}${via}: ${why}`, {
        details: messageOf(error),
        cause: error,
      });
    }
  }
}

const refusals: Readonly<Record<string, string>> = {
  EEXIST: "it is listed twice, or comes with an address",
  EHOSTUNREACH: "no address of the interface is on a network with the gateway",
  ENETUNREACH: "no address of the interface is on a network with the gateway",
};

/** Adds an address, an IPv4 one with the broadcast address of its subnet, as `ip address add ... brd +` does. */
export function assignAddress(netlink: Netlink, index: number, cidr: Cidr, flags: number): void {
  const broadcast = cidr.ip.family === 4 && cidr.prefix < 31 ? lastIpOf(cidr) : undefined;
  addAddress(netlink, { index, cidr, flags, broadcast });
}

/** A route of a result as the kernel takes it; without a gateway of its own it uses the lease's of its family. */
export function routeOf(route: Route, lease: Result): KernelRoute {
  const destination = networkOf(cidrOf(route.dst));
  const familyGateway = lease.ips.find(
    ({ address, gateway }) => gateway !== undefined && cidrOf(address).ip.family === destination.ip.family,
  )?.gateway;
  const gateway = route.gw ?? familyGateway;
  return {
    destination,
    gateway: gateway === undefined ? undefined : parseIp(gateway),
    priority: route.priority,
    table: route.table || undefined,
    scope: route.scope,
    metrics: route.mtu || route.advmss ? { mtu: route.mtu, advmss: route.advmss } : undefined,
  };
}

/** A CIDR out of a result, where decoding has already checked it. */
export function cidrOf(text: string): Cidr {
  const cidr = parseCidr(text);
  if (cidr === undefined) throw new TypeError(`${text} is not a CIDR address`);
  return cidr;
}
