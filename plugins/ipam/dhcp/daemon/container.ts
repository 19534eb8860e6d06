import { getLink, type Link, type Netlink, namespaceId, openRoute, setLink } from "@tscni/netlink";
import { type Namespace, openNamespace, openNamespaceIfPresent } from "@tscni/ns";
import { stat } from "@tscni/sys";
import { CniError, ErrorCode } from "@tscni/types";

/** An interface in a container, and how to know it again. */
export interface Place {
  /** The namespace's path, as the daemon finds it. */
  netns: string;
  /** Device and inode of the namespace: a path may lead to another one later. */
  netnsId: string;
  ifName: string;
  ifIndex: number;
  /** Lower case. */
  mac: string;
  /** The driver, such as veth. */
  kind?: string;
  /** The host's interface by which the container's network is reached when the container is gone. */
  anchor?: { name: string; index: number };
}

/** Finds the interface and brings it up. Throws CniError 8 without the namespace, 7 without an interface that will do. */
export function findPlace(netns: string, ifName: string): Place {
  using namespace = openNamespace(netns);
  using container = namespace.enter(openRoute);
  const link = getLink(container, { name: ifName });
  if (link === undefined)
    throw new CniError(
      ErrorCode.InvalidNetworkConfig,
      `error looking up "${ifName}": no such interface in ${netns}`,
    );
  if (link.type !== ARPHRD_ETHER || link.address === undefined)
    throw new CniError(ErrorCode.InvalidNetworkConfig, `DHCP needs Ethernet, which ${ifName} is not`);
  if (!link.up) setLink(container, { index: link.index }, { up: true });
  const anchor = anchorOf(container, link);
  return {
    netns,
    netnsId: idOf(namespace),
    ifName,
    ifIndex: link.index,
    mac: link.address.toLowerCase(),
    ...(link.kind === undefined ? {} : { kind: link.kind }),
    ...(anchor === undefined ? {} : { anchor }),
  };
}

const ARPHRD_ETHER = 1;

/** Device and inode; by the descriptor, since a path may change under us. */
function idOf({ fd }: Namespace): string {
  const { dev, ino } = stat(`/proc/self/fd/${fd}`);
  return `${dev}:${ino}`;
}

/** The master of a macvlan or the like on the host; of a veth, the bridge that its other end is a port of. */
function anchorOf(container: Netlink, link: Link): Place["anchor"] {
  if (link.link === undefined || link.linkNetnsId === undefined) return undefined;
  using ours = openNamespace("/proc/thread-self/ns/net");
  if (namespaceId(container, ours.fd) !== link.linkNetnsId) return undefined;
  using host = openRoute();
  const below = getLink(host, { index: link.link });
  // A veth's other end goes with it.
  const index = link.kind === "veth" ? below?.master : below?.index;
  const anchor = index ? getLink(host, { index }) : undefined;
  return anchor === undefined ? undefined : { name: anchor.name, index: anchor.index };
}

/** The namespace, opened, if it and the interface are still the same. */
export function openPlaceIfPresent(place: Place): Namespace | undefined {
  const namespace = openNamespaceIfPresent(place.netns);
  if (namespace === undefined) return undefined;
  if (idOf(namespace) === place.netnsId && hasInterface(namespace, place)) return namespace;
  namespace.close();
  return undefined;
}

/** By index and address: the name may have changed, and the index may be another's in a new namespace. */
function hasInterface(namespace: Namespace, { ifIndex, mac }: Place): boolean {
  using container = namespace.enter(openRoute);
  return getLink(container, { index: ifIndex })?.address?.toLowerCase() === mac;
}

/** Whether it is there. */
export function isPresent(place: Place): boolean {
  const namespace = openPlaceIfPresent(place);
  namespace?.close();
  return namespace !== undefined;
}

/** Takes the interface down, so that nobody uses an address that is not his any more. */
export function takeDown(place: Place): void {
  using namespace = openPlaceIfPresent(place);
  if (namespace === undefined) return;
  using container = namespace.enter(openRoute);
  setLink(container, { index: place.ifIndex }, { up: false });
}
