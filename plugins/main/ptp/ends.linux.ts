import {
  bitsOf,
  type Cidr,
  cidrText,
  type Ip,
  ipEquals,
  ipPlus,
  ipText,
  networkOf,
  parseIp,
} from "@tscni/addr";
import {
  addRoutes,
  assignAddress,
  cidrOf,
  enableForwarding,
  ensureSysctl,
  hasIpv6,
  ipv6Of,
  mismatch,
  prepareInterface,
  type Veth,
  waitUntilUsable,
  writeSysctl,
} from "@tscni/ip";
import {
  addRoute,
  IFA_F_NODAD,
  IFA_F_NOPREFIXROUTE,
  type Link,
  listAddresses,
  listRoutes,
  type Netlink,
  RT_SCOPE_HOST,
  RT_SCOPE_LINK,
  setLink,
} from "@tscni/netlink";
import type { Namespace } from "@tscni/ns";
import { CniError, ErrorCode, type IpConfig, type Result } from "@tscni/types";

/*
 * The two ends of the link. The container has its address with the subnet's prefix length, but nobody of the subnet
 * is on its link except for the gateway: all others are reached through it. The gateway is the host's end, which
 * has just that one address, and a route to just the container's.
 */

/** The addresses are ours alone, and the kernel's route to their subnet is not wanted. */
const flags = IFA_F_NODAD | IFA_F_NOPREFIXROUTE;

const alone = (ip: Ip): Cidr => ({ ip, prefix: bitsOf(ip.family) });

/** The lease with a gateway for each address: the subnet's first address where IPAM named none. Throws code 7. */
export function withGateways(lease: Result): Result {
  return { ...lease, ips: lease.ips.map((ip) => ({ ...ip, gateway: ip.gateway ?? firstOf(ip.address) })) };
}

function firstOf(address: string): string {
  const cidr = cidrOf(address);
  const first = ipPlus(networkOf(cidr).ip, 1n);
  if (cidr.prefix >= bitsOf(cidr.ip.family) - 1 || ipEquals(first, cidr.ip))
    throw new CniError(ErrorCode.InvalidNetworkConfig, `${address} has no gateway`, {
      details: "the IPAM plugin named none, and the subnet has no other address to take",
    });
  return ipText(first);
}

/** An address of the lease and its gateway, which {@link withGateways} has seen to. */
const endsOf = ({ address, gateway }: IpConfig): { cidr: Cidr; gateway: Ip } => ({
  cidr: cidrOf(address),
  gateway: parseIp(gateway!)!,
});

/** Gives the container's end its addresses and routes, and brings it up. */
export function configureContainer(sandbox: Namespace, container: Netlink, link: Link, lease: Result): void {
  const { index } = link;
  sandbox.enter(() => prepareInterface(link.name, lease));
  const ends = lease.ips.map(endsOf);
  for (const { cidr } of ends) assignAddress(container, index, cidr, flags);
  setLink(container, { index }, { up: true });
  for (const { cidr, gateway } of ends) {
    const preferredSource = cidr.ip;
    addRoute(
      container,
      { destination: alone(gateway), scope: RT_SCOPE_LINK, preferredSource, index },
      "append",
    );
    if (cidr.prefix < bitsOf(cidr.ip.family))
      addRoute(container, { destination: networkOf(cidr), gateway, preferredSource, index }, "append");
  }
  addRoutes(container, index, lease);
}

/**
 * The sysctls of the host's end, while the container's is down. Its link-local address, which it asks for neighbours
 * with, shall not wait for duplicate address detection either.
 */
export function prepareHost({ name }: Link, lease: Result): void {
  if (!hasIpv6(lease)) return;
  ensureSysctl(`net/ipv6/conf/${name}/disable_ipv6`, "0");
  writeSysctl(`net/ipv6/conf/${name}/accept_dad`, "0");
}

/** Makes the host's end the gateway, and the host a router of the families. */
export function configureHost(host: Netlink, { index }: Link, lease: Result): void {
  const ends = lease.ips.map(endsOf);
  const gateways = new Map(ends.map(({ gateway }) => [ipText(gateway), gateway]));
  for (const gateway of gateways.values()) assignAddress(host, index, alone(gateway), flags);
  for (const { cidr } of ends) {
    addRoute(host, { destination: alone(cidr.ip), scope: RT_SCOPE_HOST, index }, "replace");
    enableForwarding(host, cidr.ip.family);
  }
}

/** Waits until both ends take what is sent to their IPv6 addresses, and the host's can ask for its neighbour. */
export function waitForEnds(host: Netlink, container: Netlink, ends: Veth, lease: Result): void {
  if (!hasIpv6(lease)) return;
  waitUntilUsable(container, ends.container.index, ipv6Of(lease));
  const gateways = lease.ips.map((ip) => endsOf(ip).gateway).filter(({ family }) => family === 6);
  waitUntilUsable(host, ends.host.index, gateways, { linkLocal: true });
}

/** CHECK's part: the host's end has the gateways, and the routes to the container's addresses. */
export function verifyHost(host: Netlink, { index, name }: Link, ips: readonly IpConfig[]): void {
  const addresses = new Set(listAddresses(host, { index }).map(({ cidr }) => ipText(cidr.ip)));
  const routes = new Set(listRoutes(host, { index }).map(({ destination }) => cidrText(destination)));
  for (const { address, gateway } of ips) {
    const { ip } = cidrOf(address);
    if (gateway && !addresses.has(ipText(parseIp(gateway)!)))
      throw mismatch(`interface ${name} lacks the gateway's address ${gateway}`);
    if (!routes.has(cidrText(alone(ip)))) throw mismatch(`the host has no route to ${ipText(ip)} by ${name}`);
  }
}
