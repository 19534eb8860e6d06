import { type Attachment, interfaceOf, mismatch, requireKind, requirePrevResult } from "@tscni/ip";
import {
  addRedirect,
  deleteQdisc,
  deleteRedirects,
  hasTokenBuckets,
  type Link,
  listRedirects,
  type Netlink,
  openRoute,
  setTokenBucket,
} from "@tscni/netlink";
import { definePlugin, type Undo } from "@tscni/skel";
import { sleep } from "@tscni/sys";
import { CniError, ErrorCode, specVersions } from "@tscni/types";
import { BandwidthConf } from "./conf.ts";
import { createIfb, deleteIfbIfPresent, findIfb, gcIfbs } from "./ifb.linux.ts";
import { type Limits, limitsOf } from "./limits.ts";
import { ensureIngress, hostEndOf, verifyBucket, warnOfSmall } from "./port.linux.ts";

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

    if (ingress) warnOfSmall(call, "ingressBurst", ingress, port);
    if (egress) warnOfSmall(call, "egressBurst", egress, port);
    const ifb = limit(host, call, port, { ingress, egress }, undo);
    return ifb ? { ...result, interfaces: [...result.interfaces, interfaceOf(ifb)] } : result;
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

  /** What others have taken away is made anew; the container's end is not touched. */
  repair(call) {
    using host = openRoute();
    const port = hostEndOf(host, call, requirePrevResult(call.prevResult));
    limit(host, call, port, limitsOf(call.conf));
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

/** Sets the limits at the host's end of a veth, over whatever is there of them. Returns the ifb, if it takes one. */
function limit(
  host: Netlink,
  attachment: Attachment,
  port: Link,
  { ingress, egress }: Limits,
  undo?: Undo,
): Link | undefined {
  if (ingress) {
    setTokenBucket(host, port.index, ingress);
    undo?.defer(() => withHost((host) => deleteQdisc(host, port.index, "root")));
  }
  if (!egress) return undefined;
  const ifb = createIfb(host, attachment, port, egress);
  undo?.defer(() => withHost((host) => deleteIfbIfPresent(host, attachment)));
  const isNew = ensureIngress(host, port.index);
  undo?.defer(() =>
    withHost((host) =>
      isNew ? deleteQdisc(host, port.index, "ingress") : deleteRedirects(host, port.index),
    ),
  );
  addRedirect(host, port.index, ifb.index);
  return ifb;
}

/** When an ADD is taken back, the sockets that it had open are closed already. */
function withHost(work: (host: Netlink) => void): void {
  using host = openRoute();
  work(host);
}
