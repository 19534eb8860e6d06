import {
  addLink,
  deleteLinkIfPresent,
  getLink,
  type Link,
  type Netlink,
  NetlinkError,
  type NewLink,
  openRoute,
  setLink,
} from "@tscni/netlink";
import { type Namespace, openNamespaceIfPresent } from "@tscni/ns";
import { CniError, type Dns, ErrorCode, emptyResult, type Result } from "@tscni/types";
import { enableAnnouncements } from "./announce.linux.ts";
import { configureInterface, prepareInterface } from "./configure.linux.ts";
import { ipv6Of, waitUntilUsable } from "./usable.linux.ts";
import { interfaceOf } from "./veth.linux.ts";

/*
 * What plugins do with the one interface that they make in a container, whatever its kind.
 */

/** Which interface of which container: a plugin's call has these. */
export interface ContainerInterface {
  readonly ifName: string;
  /** The namespace's path; "" when it is gone. */
  readonly netns: string;
}

/** An interface of a container. Throws CniError when there is none of that name. */
export function containerLink(container: Netlink, ifName: string): Link {
  const link = getLink(container, { name: ifName });
  if (link === undefined)
    throw new CniError(ErrorCode.Internal, `the container has no interface ${JSON.stringify(ifName)}`);
  return link;
}

/**
 * Makes a link in the container, under its final name in one message, so that a kill leaves nothing on the host.
 * `home` is a socket of the namespace that `link.link` (its master) is an index of. Throws CniError when the
 * container has an interface of that name, NetlinkError for anything else that the kernel refuses.
 */
export function createContainerLink(
  home: Netlink,
  sandbox: Namespace,
  container: Netlink,
  link: NewLink,
): Link {
  try {
    addLink(home, { ...link, netNsFd: sandbox.fd });
  } catch (error) {
    if (!(error instanceof NetlinkError && error.code === "EEXIST")) throw error;
    if (getLink(container, { name: link.name }) !== undefined) throw nameTaken(link.name);
    // Of the master, too, something may exist: a VLAN of that id, say.
    if (getLink(home, { name: link.name }) === undefined) throw error;
    addLink(home, { ...link, netNsFd: sandbox.fd, index: freeIndex(home, container) });
  }
  const made = getLink(container, { name: link.name });
  if (made === undefined) throw new CniError(ErrorCode.Internal, `interface ${link.name} is gone again`);
  return made;
}

/**
 * An index that neither namespace uses. Kernels before 6.14 look for a link's name in the namespace of the socket,
 * where another may have it, unless the index is given (rtnl_newlink in net/core/rtnetlink.c).
 */
function freeIndex(home: Netlink, container: Netlink): number {
  for (let index = 1 << 20; ; index++) {
    if (![home, container].some((netlink) => getLink(netlink, { index }) !== undefined)) return index;
  }
}

/** Of an ADD onto an interface that is there already. */
export const nameTaken = (name: string): CniError =>
  new CniError(ErrorCode.Internal, `interface "${name}" already exists in the container`, {
    details: "an ADD without a DEL before it, or an interface that something else made",
  });

/**
 * Brings a new interface up: with the addresses and routes of a lease, without one as the kernel has it. Its addresses
 * are there before it comes up, so that the kernel announces them then (NETDEV_UP in net/ipv4/devinet.c and
 * net/ipv6/ndisc.c). A link that carries nothing yet at that moment wants `announceAddresses` afterwards.
 */
export function bringUp(sandbox: Namespace, container: Netlink, link: Link, lease: Result | undefined): void {
  if (lease === undefined) {
    setLink(container, { index: link.index }, { up: true });
    return;
  }
  sandbox.enter(() => {
    enableAnnouncements(link.name, lease);
    prepareInterface(link.name, lease);
  });
  configureInterface(container, link.index, lease);
  waitUntilUsable(container, link.index, ipv6Of(lease));
}

/** The result of an ADD that made one interface, which has all addresses of the lease. */
export function containerResult(
  { netns, conf }: { readonly netns: string; readonly conf: { readonly dns?: ConfiguredDns | undefined } },
  link: Link,
  lease: Result = emptyResult(),
): Result {
  return {
    interfaces: [{ ...interfaceOf(link), sandbox: netns }],
    ips: lease.ips.map((ip) => ({ ...ip, interface: 0 })),
    routes: lease.routes,
    dns: dnsOf(conf.dns, lease),
  };
}

/** `dns` as a config has it. */
type ConfiguredDns = { readonly [K in keyof Dns]: Dns[K] | undefined };

/** The DNS of a result: the config's if it says anything, else IPAM's. */
export const dnsOf = (configured: ConfiguredDns | undefined, lease: Result): Dns =>
  configured !== undefined && Object.keys(configured).length > 0 ? (configured as Dns) : lease.dns;

/** Deletes the container's interface. Fine when it is gone, or the namespace, or there never was one. */
export function deleteContainerLink({ netns, ifName }: ContainerInterface): void {
  using sandbox = openNamespaceIfPresent(netns);
  if (sandbox === undefined) return;
  using container = sandbox.enter(openRoute);
  deleteLinkIfPresent(container, ifName);
}
