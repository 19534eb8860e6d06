import { hostInterfaceOf, interfaceOf, mismatch, requireKind, requirePrevResult } from "@tscni/ip";
import {
  addIngress,
  addRedirect,
  deleteQdisc,
  deleteRedirects,
  getLink,
  hasTokenBuckets,
  type Link,
  listQdiscs,
  listRedirects,
  type Netlink,
  NetlinkError,
  openRoute,
  setTokenBucket,
  type TokenBucket,
} from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import { type Call, definePlugin } from "@tscni/skel";
import { sleep } from "@tscni/sys";
import { CniError, ErrorCode, type Result, specVersions } from "@tscni/types";
import { BandwidthConf } from "./conf.ts";
import { createIfb, deleteIfbIfPresent, findIfb, gcIfbs } from "./ifb.linux.ts";
import { burstOf, limitsOf } from "./limits.ts";

type BandwidthCall = Call<BandwidthConf>;

/** Limits what a container receives where the host sends it, and what it sends in an ifb on the host. */
export default definePlugin({
  name: "bandwidth",
  about: "limits the rates at which a container sends and receives",
  conf: BandwidthConf,
  // Below 0.3.0 a result has no interfaces, among which the host's is looked for.
  versions: specVersions.filter((version) => version !== "0.1.0" && version !== "0.2.0"),

  add(call, undo) {
    const result = requirePrevResult(call.prevResult);
    const { ingress, egress } = limitsOf(call.conf);
    if (!ingress && !egress) return result;
    using host = openRoute();
    const port = hostEndOf(host, call, result);

    if (ingress) {
      warnOfSmall(call, "ingressBurst", ingress, port);
      setTokenBucket(host, port.index, ingress);
      undo.defer(() => withHost((host) => deleteQdisc(host, port.index, "root")));
    }
    if (!egress) return result;
    warnOfSmall(call, "egressBurst", egress, port);
    const ifb = createIfb(host, call, port, egress);
    undo.defer(() => withHost((host) => deleteIfbIfPresent(host, call)));
    const isNew = ensureIngress(host, port.index);
    undo.defer(() =>
      withHost((host) =>
        isNew ? deleteQdisc(host, port.index, "ingress") : deleteRedirects(host, port.index),
      ),
    );
    addRedirect(host, port.index, ifb.index);
    return { ...result, interfaces: [...result.interfaces, interfaceOf(ifb)] };
  },

  /** The veth's queues go with it, which the interface's plugin is about to delete. */
  del(call) {
    using host = openRoute();
    deleteIfbIfPresent(host, call);
  },

  check(call) {
    const result = requirePrevResult(call.prevResult);
    const { ingress, egress } = limitsOf(call.conf);
    using host = openRoute();
    const port = hostEndOf(host, call, result);
    if (ingress) verifyBucket(host, port, ingress);
    if (!egress) return;
    const ifb = findIfb(host, call);
    if (ifb === undefined) throw mismatch(`the ifb of ${call.ifName} is missing`);
    if (!ifb.up) throw mismatch(`${ifb.name} is down`);
    verifyBucket(host, ifb, egress);
    if (!listRedirects(host, port.index).includes(ifb.index))
      throw mismatch(`what comes in by ${port.name} is not redirected to ${ifb.name}`);
  },

  /** Ready when the config makes sense and the kernel has ifb and tbf. */
  status({ conf }) {
    limitsOf(conf);
    using host = openRoute();
    requireKind(host, "ifb");
    if (!hasTokenBuckets(host))
      throw new CniError(ErrorCode.PluginNotAvailable, "this kernel has no token buckets", {
        details: "it is built without sch_tbf, or the module can't be loaded",
      });
  },

  gc({ network, validAttachments, warn }) {
    if (validAttachments === undefined) return;
    using host = openRoute();
    const valid = validAttachments.map(({ containerID, ifname }) => ({
      network,
      containerId: containerID,
      ifName: ifname,
    }));
    for (const { name, alias } of gcIfbs(host, network, valid, () => sleep(inTheMakingMs)))
      warn(`gc: removed link ${name}${alias ? ` (${alias})` : ""}`);
  },
});

/** An ADD needs a millisecond between making an ifb and redirecting to it; this allows for a very busy machine. */
const inTheMakingMs = 500;

/** When an ADD is taken back, the sockets that it had open are closed already. */
function withHost(work: (host: Netlink) => void): void {
  using host = openRoute();
  work(host);
}

/** The host's end of the container's veth, which the previous result must have. Throws CniError. */
function hostEndOf(host: Netlink, { netns, ifName }: BandwidthCall, result: Result): Link {
  using sandbox = openNamespace(netns);
  using container = sandbox.enter(openRoute);
  const end = getLink(container, { name: ifName });
  if (end?.kind !== "veth" || !end.link)
    throw mismatch(
      `container interface ${ifName} has no veth peer: it is ${end ? "another kind" : "missing"}`,
    );
  const peer = getLink(host, { index: end.link });
  if (peer?.kind !== "veth" || peer.link !== end.index)
    throw mismatch(`veth peer with index ${end.link} is not in host ns`);
  hostInterfaceOf(result, peer.name);
  return peer;
}

/** Returns whether the link had none. What an ADD without a DEL redirected is redirected no more. */
function ensureIngress(host: Netlink, index: number): boolean {
  try {
    addIngress(host, index);
    return true;
  } catch (error) {
    if (!(error instanceof NetlinkError) || error.code !== "EEXIST") throw error;
    deleteRedirects(host, index);
    return false;
  }
}

/** A bucket too small for a packet lets only smaller ones through, without a word from the kernel. */
function warnOfSmall(call: BandwidthCall, key: string, bucket: TokenBucket, { mtu = 0 }: Link): void {
  const frame = mtu + ethernetHeader;
  if (burstOf(bucket) < frame)
    call.warn(
      `${key}: ${burstOf(bucket)} bytes are less than a packet of ${frame}: such will not get through`,
    );
}

const ethernetHeader = 14;

function verifyBucket(host: Netlink, link: Link, { rate, limit, buffer }: TokenBucket): void {
  const found = listQdiscs(host, link.index).find(({ isRoot }) => isRoot)?.tokenBucket;
  if (found === undefined) throw mismatch(`${link.name} has no token bucket`);
  if (found.rate !== rate) throw mismatch(`the rate of ${link.name} is ${found.rate} B/s, not ${rate}`);
  if (found.limit !== limit)
    throw mismatch(`the limit of ${link.name} is ${found.limit} bytes, not ${limit}`);
  if (found.buffer !== buffer)
    throw mismatch(
      `the burst of ${link.name} is ${burstOf(found)} bytes, not ${burstOf({ rate, limit, buffer })}`,
    );
}
