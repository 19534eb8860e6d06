import type { Ip } from "@tscni/addr";
import {
  getRoute,
  IFA_F_DADFAILED,
  IFA_F_TENTATIVE,
  listAddresses,
  type Netlink,
  NetlinkError,
  RT_SCOPE_LINK,
  RTN_LOCAL,
} from "@tscni/netlink";
import type { Result } from "@tscni/types";
import { cidrOf } from "./configure.linux.ts";

/** The IPv6 addresses of a result. */
export const ipv6Of = ({ ips }: Pick<Result, "ips">): Ip[] =>
  ips.map(({ address }) => cidrOf(address).ip).filter(({ family }) => family === 6);

/**
 * Waits until the kernel takes what is sent to IPv6 addresses of a link. Without duplicate address detection an address
 * is valid at once, but its multicast group and its local route are made by a worker (addrconf_dad_work in
 * net/ipv6/addrconf.c), which waits for the lock that all changes to networking take. On a busy host that is
 * milliseconds, and what comes earlier is lost, for a second if it was a neighbour solicitation. With `linkLocal` it
 * waits for the link's own link-local address, too, which a router asks for neighbours with.
 *
 * Gives up after a second: how a host's own rules route to its addresses is not for us to judge.
 */
export function waitUntilUsable(
  netlink: Netlink,
  index: number,
  ips: readonly Ip[],
  { linkLocal = false }: { linkLocal?: boolean } = {},
): void {
  const deadline = Bun.nanoseconds() + 1e9;
  for (let pauseMs = 0.05; ; pauseMs = Math.min(20, pauseMs * 2)) {
    const tentative = linkLocal && isLinkLocalTentative(netlink, index);
    if (!tentative && ips.every((ip) => isLocal(netlink, ip, index))) return;
    if (Bun.nanoseconds() > deadline) return;
    Bun.sleepSync(pauseMs);
  }
}

const isLinkLocalTentative = (netlink: Netlink, index: number): boolean =>
  listAddresses(netlink, { index, family: 6 }).some(
    // One that has failed detection stays tentative for ever.
    ({ scope, flags = 0 }) =>
      scope === RT_SCOPE_LINK && (flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) === IFA_F_TENTATIVE,
  );

/** Whether packets to an address, by a link if one is given, are for this host itself. */
export function isLocal(netlink: Netlink, ip: Ip, index?: number): boolean {
  try {
    return getRoute(netlink, ip, index).type === RTN_LOCAL;
  } catch (error) {
    if (error instanceof NetlinkError) return false; // no way there
    throw error;
  }
}
