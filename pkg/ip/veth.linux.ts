import {
  createLink,
  deleteLinkIfPresent,
  getLink,
  type Link,
  type Netlink,
  NetlinkError,
  setLink,
} from "@tscni/netlink";
import type { Namespace } from "@tscni/ns";
import { CniError, ErrorCode, type Interface } from "@tscni/types";
import { type Attachment, aliasOf, hostInterfaceName } from "./attachment.linux.ts";
import { writeSysctlIfPresent } from "./sysctl.linux.ts";

export interface VethOptions {
  /** Bytes; 0 leaves it to the kernel. */
  mtu: number;
  /** The container end's address; the kernel chooses one when undefined. */
  mac?: string | undefined;
  /** Index of the link to enslave the host end to. */
  master?: number;
}

/** Both ends of a veth pair: indices and MAC addresses are of different namespaces. */
export interface Veth {
  host: Link;
  container: Link;
}

/** A link as results list it; a link in a container wants its `sandbox` added. */
export const interfaceOf = ({ name, address, mtu }: Link): Interface => ({
  name,
  ...(address ? { mac: address } : {}),
  ...(mtu ? { mtu } : {}),
});

/**
 * Makes a veth pair: the host end up, named and labelled after the attachment and enslaved if asked for; the
 * container end down, under the attachment's ifName in the container. What a killed ADD of the same attachment left
 * is replaced. Throws CniError when the container has an interface of that name.
 *
 * A host end that is enslaved has no IPv6 of its own: all it receives is its master's (br_handle_frame in
 * net/bridge/br_input.c), and a link-local address and two routes for each of a thousand ports make every change of
 * a link slow. It is set before the link comes up, as is the alias: on a link that is up, either is told to everybody.
 */
export function createVeth(
  host: Netlink,
  sandbox: Namespace,
  container: Netlink,
  attachment: Attachment,
  options: VethOptions,
): Veth {
  const name = hostInterfaceName(attachment);
  const { mtu, mac, master } = options;
  const shared = mtu > 0 ? { mtu } : {};
  const make = () =>
    createLink(host, {
      kind: "veth",
      name,
      ...shared,
      ...(master === undefined ? {} : { master }),
      veth: {
        peer: { name: attachment.ifName, netNsFd: sandbox.fd, ...shared, ...(mac ? { address: mac } : {}) },
      },
    });
  const end = makeReplacing(host, container, name, attachment.ifName, make);
  try {
    const silent = master === undefined ? (["accept_ra", "0"] as const) : (["disable_ipv6", "1"] as const);
    writeSysctlIfPresent(`net/ipv6/conf/${name}/${silent[0]}`, silent[1]);
    setLink(host, { index: end.index }, { alias: aliasOf(attachment), up: true });
    const peer = getLink(container, { name: attachment.ifName });
    if (peer === undefined)
      throw new CniError(ErrorCode.Internal, `interface ${attachment.ifName} is gone again`);
    return { host: end, container: peer };
  } catch (error) {
    deleteLinkIfPresent(host, name);
    throw error;
  }
}

/** EEXIST may mean either name: the container's is an error, the host's a leftover without a container end. */
function makeReplacing(
  host: Netlink,
  container: Netlink,
  name: string,
  ifName: string,
  make: () => Link,
): Link {
  for (let attempt = 0; ; attempt++) {
    try {
      return make();
    } catch (error) {
      if (!(error instanceof NetlinkError) || error.code !== "EEXIST") throw error;
      if (getLink(container, { name: ifName }) !== undefined || attempt > 0)
        throw new CniError(
          ErrorCode.Internal,
          `container veth name ("${ifName}") peer provided ("${name}") already exists`,
          { details: "an ADD without a DEL before it, or an interface that something else made" },
        );
      deleteLinkIfPresent(host, name);
    }
  }
}

/**
 * Waits until a link carries traffic (operational state UP, RFC 2863): the kernel gets there by itself a moment
 * after both ends are up; up to a second after where both have the same index, which it takes for no pair
 * (linkwatch_urgent_event in net/core/link_watch.c). IPv6 needs that of both ends. Throws CniError after two seconds;
 * `what` names the link.
 */
export function waitUntilUp(netlink: Netlink, index: number, what = "bridge port"): Link {
  const operUp = 6;
  const deadline = Bun.nanoseconds() + 2e9;
  for (let pauseMs = 0; ; pauseMs = Math.min(50, pauseMs * 2 + 0.05)) {
    if (pauseMs > 0) Bun.sleepSync(pauseMs);
    const link = getLink(netlink, { index });
    if (link === undefined) throw new CniError(ErrorCode.Internal, `link ${index} is gone`);
    if (link.operState === operUp) return link;
    if (Bun.nanoseconds() > deadline)
      throw new CniError(ErrorCode.Internal, `${what} in error state: ${link.operState}`, {
        details: `${link.name} did not come up within two seconds`,
      });
  }
}
