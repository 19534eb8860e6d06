import { getLink, type Link, listRoutes, type Netlink } from "@tscni/netlink";
import { CniError, ErrorCode } from "@tscni/types";
import { mismatch } from "./verify.linux.ts";

/** The link beneath a vlan, macvlan or ipvlan. Throws CniError, with code 7 or the one given, when there is none. */
export function findMaster(
  netlink: Netlink,
  name: string,
  code: number = ErrorCode.InvalidNetworkConfig,
): Link {
  const master = getLink(netlink, { name });
  if (master === undefined) throw new CniError(code, `failed to lookup master "${name}": Link not found`);
  return master;
}

/** The name of the link that the default route goes by, IPv4's before IPv6's. Throws CniError when there is none. */
export function defaultMaster(netlink: Netlink, code: number = ErrorCode.InvalidNetworkConfig): string {
  const route = listRoutes(netlink).find(
    ({ destination, type, index }) => destination.prefix === 0 && type === 1 && index !== undefined,
  );
  const link = route?.index === undefined ? undefined : getLink(netlink, { index: route.index });
  if (link === undefined)
    throw new CniError(code, "no default route interface found", {
      details: 'name an interface in the key "master"',
    });
  return link.name;
}

/** Throws CniError unless a link with this MTU (bytes, 0 for the kernel's choice) fits onto its master. */
export function verifyMtu(mtu: number, master: Link): void {
  if (master.mtu !== undefined && mtu > master.mtu)
    throw new CniError(
      ErrorCode.InvalidNetworkConfig,
      `invalid MTU ${mtu}, must be [0, master MTU(${master.mtu})]`,
      { details: `master is "${master.name}"` },
    );
}

/** CHECK's part: throws unless a link is on top of this master. */
export function verifyMaster(link: Link, master: Link | undefined): void {
  if (master === undefined || link.link !== master.index)
    throw mismatch(`interface ${link.name} is not on top of ${master?.name ?? "anything"}`);
}
