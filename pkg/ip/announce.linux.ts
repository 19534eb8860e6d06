import { type Link, type Netlink, setLink } from "@tscni/netlink";
import type { Namespace } from "@tscni/ns";
import type { Result } from "@tscni/types";
import { writeSysctlIfPresent } from "./sysctl.linux.ts";

/**
 * Makes the kernel announce an interface's addresses from now on: when it comes up, and when its MAC address is set.
 * Call it inside the namespace. A neighbour advertisement goes to every port of a bridge, and with a thousand containers
 * on it keeps the kernel busy for 20 ms: where there are only IPv4 addresses, it would say nothing that matters.
 */
export function enableAnnouncements(ifName: string, { ips }: Pick<Result, "ips">): void {
  writeSysctlIfPresent(`net/ipv4/conf/${ifName}/arp_notify`, "1");
  if (ips.some(({ address }) => address.includes(":")))
    writeSysctlIfPresent(`net/ipv6/conf/${ifName}/ndisc_notify`, "1");
}

/**
 * Tells the neighbours on a link which MAC address has the link's IP addresses, so that one who remembers an
 * address's last owner takes the new one at once: gratuitous ARP (RFC 5227) and unsolicited neighbour
 * advertisements (RFC 4861, 7.2.6). The kernel sends them when a MAC address is set, also to what it is
 * (NETDEV_CHANGEADDR in net/ipv4/devinet.c and net/ipv6/ndisc.c). A packet socket of our own would do, too,
 * but closing one waits for the kernel's RCU, 10 to 20 ms. A link that came up with announcements enabled has made
 * one already: on a bridge it is lost or not, as the port is forwarding yet, and costs as much as this one.
 */
export function announceAddresses(sandbox: Namespace, netlink: Netlink, link: Link, result: Result): void {
  sandbox.enter(() => enableAnnouncements(link.name, result));
  if (link.address) setLink(netlink, { index: link.index }, { address: link.address });
}
