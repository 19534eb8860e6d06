import { bitsOf, cidrText, ipText, networkOf } from "@tscni/addr";
import { getLink, type Link, listAddresses, listRoutes, type Netlink, type Route } from "@tscni/netlink";
import { CniError, ErrorCode, type Interface, type Result } from "@tscni/types";
import { cidrOf, routeOf } from "./configure.linux.ts";

/** What CHECK found to be otherwise than ADD left it. */
export const mismatch = (msg: string): CniError => new CniError(ErrorCode.Internal, msg);

/** The result of the ADD that CHECK looks after. Throws code 7 when the runtime did not pass it. */
export function requirePrevResult(prevResult: Result | undefined): Result {
  if (prevResult === undefined)
    throw new CniError(ErrorCode.InvalidNetworkConfig, "Required prevResult missing");
  return prevResult;
}

/** The container's interface in a result: by name and sandbox. Throws when the result has none. */
export function containerInterfaceOf(result: Result, ifName: string, netns: string): Interface {
  const found = result.interfaces.find((i) => i.name === ifName && i.sandbox === netns);
  if (found === undefined) throw mismatch(`prevResult has no interface "${ifName}" in sandbox "${netns}"`);
  return found;
}

/** The host's interface of that name in a result. Throws when the result has none. */
export function hostInterfaceOf(result: Result, name: string): Interface {
  const found = result.interfaces.find((i) => i.name === name && !i.sandbox);
  if (found === undefined) throw mismatch(`prevResult has no interface "${name}" on the host`);
  return found;
}

/** Throws unless a link has the MAC address that the result says, if it says one. `what` names the link. */
export function verifyMac(what: string, link: Link, { mac }: Interface): void {
  if (mac !== undefined && mac.toLowerCase() !== link.address)
    throw mismatch(`${what} has MAC address ${link.address}, not ${mac}`);
}

/**
 * Finds a link of the result on the kernel and compares what the result says of it; its kind may be any when undefined.
 * Throws on a difference.
 */
export function verifyLink(netlink: Netlink, expected: Interface, kind: string | undefined): Link {
  const link = getLink(netlink, { name: expected.name });
  if (link === undefined) throw mismatch(`interface ${expected.name} is missing`);
  if (kind !== undefined && link.kind !== kind)
    throw mismatch(`interface ${expected.name} is of kind ${link.kind ?? "none"}, not ${kind}`);
  verifyMac(`interface ${expected.name}`, link, expected);
  return link;
}

/**
 * CHECK of a container's interface: it is there, of this kind, and has the MAC address, addresses and routes that
 * the result says. Returns it. Throws on the first difference.
 */
export function verifyInterface(
  container: Netlink,
  result: Result,
  { ifName, netns }: { readonly ifName: string; readonly netns: string },
  kind: string | undefined,
): Link {
  const expected = containerInterfaceOf(result, ifName, netns);
  const position = result.interfaces.indexOf(expected);
  const link = verifyLink(container, expected, kind);
  // Routes of a result without addresses here are of another interface.
  if (!result.ips.some((ip) => ip.interface === position)) return link;
  verifyAddresses(container, link, result, position);
  verifyRoutes(container, link, result, position);
  return link;
}

/**
 * CHECK of a veth's host end: the container's peer is there, and the result has it with this MAC address. Returns
 * it. Throws on a difference.
 */
export function verifyPeer(host: Netlink, result: Result, container: Link): Link {
  const end = container.link === undefined ? undefined : getLink(host, { index: container.link });
  if (end === undefined) throw mismatch(`the host end of ${container.name} is missing`);
  verifyMac(`interface ${end.name}`, end, hostInterfaceOf(result, end.name));
  return end;
}

/** Throws unless the link has every address that the result gives to interface number `position`. */
export function verifyAddresses(netlink: Netlink, link: Link, result: Result, position: number): void {
  const present = new Set(listAddresses(netlink, { index: link.index }).map((a) => cidrText(a.cidr)));
  for (const ip of result.ips.filter((ip) => ip.interface === position)) {
    const address = cidrText(cidrOf(ip.address));
    if (!present.has(address)) throw mismatch(`interface ${link.name} lacks the address ${address}`);
  }
}

/** Throws unless the kernel has a route to each address's subnet and every route of the result. */
export function verifyRoutes(netlink: Netlink, link: Link, result: Result, position: number): void {
  const present = listRoutes(netlink, { index: link.index });
  for (const ip of result.ips.filter((ip) => ip.interface === position)) {
    const cidr = cidrOf(ip.address);
    if (cidr.prefix === bitsOf(cidr.ip.family)) continue; // a subnet of one address, which has no route
    const subnet = cidrText(networkOf(cidr));
    if (!present.some((route) => cidrText(route.destination) === subnet))
      throw mismatch(`interface ${link.name} has no route to ${subnet}`);
  }
  for (const route of result.routes) {
    const wanted = routeOf(route, result);
    if (!present.some((r) => matches(r, wanted)))
      throw mismatch(
        `the route to ${route.dst}${wanted.gateway ? ` via ${ipText(wanted.gateway)}` : ""} is missing from ${link.name}`,
      );
  }
}

/** A default route counts whatever its gateway: a later plugin may have replaced it. */
function matches(route: Route, wanted: Route): boolean {
  if (cidrText(route.destination) !== cidrText(wanted.destination)) return false;
  if (wanted.table !== undefined && route.table !== wanted.table) return false;
  const { gateway } = wanted;
  if (wanted.destination.prefix === 0 || gateway === undefined) return true;
  return [route, ...(route.nextHops ?? [])].some(
    (hop) => hop.gateway && ipText(hop.gateway) === ipText(gateway),
  );
}
