import { mismatch, requireKind, requirePrevResult } from "@tscni/ip";
import { getLink, type Netlink, openRoute } from "@tscni/netlink";
import { openNamespace, openNamespaceIfPresent } from "@tscni/ns";
import { type Call, definePlugin } from "@tscni/skel";
import { CniError, ErrorCode } from "@tscni/types";
import { VrfConf } from "./conf.ts";
import { belongingsOf, moveToMain, moveToVrf } from "./move.linux.ts";
import { deleteVrfIfEmpty, ensureVrf, findVrf } from "./vrf.linux.ts";

/** Puts the interface that the plugins before made into a VRF: a routing table of its own, apart from the others. */
export default definePlugin({
  name: "vrf",
  about: "puts a container's interface into a VRF",
  conf: VrfConf,
  versions: ["0.3.1", "0.4.0", "1.0.0", "1.1.0"],

  add(call, undo) {
    const result = requirePrevResult(call.prevResult);
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);
    const link = getLink(container, { name: call.ifName });
    if (link === undefined)
      throw new CniError(ErrorCode.Internal, `could not get link by name ${call.ifName}`);
    if (link.master)
      throw new CniError(
        ErrorCode.Internal,
        `interface ${link.name} has already a master set: ${getLink(container, { index: link.master })?.name}`,
      );
    if (findVrf(container, call.conf.vrfname) === undefined)
      undo.defer(() => inContainer(call, (netlink) => deleteVrfIfEmpty(netlink, call.conf.vrfname)));
    const vrf = ensureVrf(container, call.conf);
    const belongings = belongingsOf(container, link);
    undo.defer(() => inContainer(call, (netlink) => moveToMain(netlink, link, vrf, belongings)));
    moveToVrf(container, link, vrf, belongings);
    return result;
  },

  del(call) {
    inContainer(call, (container) => {
      const vrf = findVrf(container, call.conf.vrfname);
      const link = getLink(container, { name: call.ifName });
      if (vrf !== undefined && link?.master === vrf.index)
        moveToMain(container, link, vrf, belongingsOf(container, link));
      deleteVrfIfEmpty(container, call.conf.vrfname);
    });
  },

  check({ conf, ifName, netns, prevResult }) {
    requirePrevResult(prevResult);
    using sandbox = openNamespace(netns);
    using container = sandbox.enter(openRoute);
    const vrf = findVrf(container, conf.vrfname);
    if (vrf === undefined) throw mismatch(`VRF ${conf.vrfname} is missing`);
    if (!vrf.up) throw mismatch(`VRF ${conf.vrfname} is down`);
    if (conf.table > 0 && vrf.table !== conf.table)
      throw mismatch(`VRF ${conf.vrfname} has routing table ${vrf.table}, not ${conf.table}`);
    if (getLink(container, { name: ifName })?.master !== vrf.index)
      throw mismatch(`failed to find ${ifName} associated to vrf ${conf.vrfname}`);
  },

  status() {
    using host = openRoute();
    requireKind(host, "vrf");
  },

  /** Nothing to collect: a VRF goes with its namespace. */
  gc() {},
});

/** With a socket of its own; does nothing when the namespace is gone. */
function inContainer({ netns }: Call<VrfConf>, work: (container: Netlink) => void): void {
  using sandbox = openNamespaceIfPresent(netns);
  if (sandbox === undefined) return;
  using container = sandbox.enter(openRoute);
  work(container);
}
