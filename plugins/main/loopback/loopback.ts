import { type Cidr, cidrText, type Ip, ipText } from "@tscni/addr";
import { getLink, type Link, listAddresses, type Netlink, openRoute, setLink } from "@tscni/netlink";
import { openNamespace, openNamespaceIfPresent } from "@tscni/ns";
import { definePlugin } from "@tscni/skel";
import { CniError, ErrorCode, emptyResult, messageOf, type Result } from "@tscni/types";
import { LoopbackConf } from "./conf.ts";

/** Brings up `lo` in the container, whatever CNI_IFNAME says. */
export default definePlugin({
  name: "loopback",
  about: "brings up the loopback interface of a container",
  conf: LoopbackConf,

  add(call, undo) {
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);
    const lo = loopbackOf(container);
    verifyAddresses(addressesOf(container, lo));
    if (!lo.up) {
      setLink(container, lo, { up: true });
      undo.defer(() => takeDown(call.netns));
    }
    return call.prevResult ?? resultOf(lo, addressesOf(container, lo), call.netns);
  },

  del(call) {
    takeDown(call.netns);
  },

  check(call) {
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);
    if (!loopbackOf(container).up) throw new CniError(ErrorCode.Internal, "loopback interface is down");
  },

  /** Nothing on the host is needed but the right to enter a namespace and rtnetlink: both are tried on our own. */
  status() {
    try {
      using own = openNamespace("/proc/thread-self/ns/net");
      own.enter(openRoute).close();
    } catch (error) {
      throw new CniError(ErrorCode.PluginNotAvailable, "cannot work in network namespaces", {
        details: messageOf(error),
      });
    }
  },

  /** Nothing to collect: all that ADD does goes with the container's namespace. */
  gc() {},
});

function loopbackOf(container: Netlink): Link {
  const lo = getLink(container, { name: "lo" });
  if (lo === undefined) throw new CniError(ErrorCode.Internal, 'the container has no interface "lo"');
  return lo;
}

/** A namespace that is gone has taken its `lo` with it. */
function takeDown(netns: string): void {
  using sandbox = openNamespaceIfPresent(netns);
  using container = sandbox?.enter(openRoute);
  if (container) setLink(container, { name: "lo" }, { up: false });
}

const addressesOf = (container: Netlink, lo: Link): Cidr[] =>
  listAddresses(container, { index: lo.index }).map(({ cidr }) => cidr);

/** Refuses an address that has no business on `lo`, before anything is changed. */
function verifyAddresses(addresses: readonly Cidr[]): void {
  const foreign = addresses.find(({ ip }) => !isLoopback(ip));
  if (foreign === undefined) return;
  const text = `loopback interface found with non-loopback address "${ipText(foreign.ip)}"`;
  throw new CniError(ErrorCode.Internal, text);
}

/** 127.0.0.0/8 and ::1, RFC 6890. */
const isLoopback = ({ family, value }: Ip): boolean => (family === 4 ? value >> 24n === 127n : value === 1n);

/** `lo` with its first address of each family: 127.0.0.1/8 and ::1/128, which the kernel adds as it comes up. */
function resultOf(lo: Link, addresses: readonly Cidr[], sandbox: string): Result {
  const first = (family: 4 | 6) => addresses.filter(({ ip }) => ip.family === family).slice(0, 1);
  return {
    ...emptyResult(),
    interfaces: [{ name: lo.name, mac: lo.address ?? "", mtu: lo.mtu ?? 0, sandbox }],
    ips: [...first(4), ...first(6)].map((cidr) => ({ interface: 0, address: cidrText(cidr) })),
  };
}
