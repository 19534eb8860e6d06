import {
  bringUp,
  containerResult,
  createContainerLink,
  deleteContainerLink,
  findMaster,
  mismatch,
  requireKind,
  requirePrevResult,
  verifyInterface,
  verifyMaster,
  verifyMtu,
} from "@tscni/ip";
import { addLease, checkLease, gcLeases, ipamStatus, releaseLease, releaseOverLink } from "@tscni/ipam";
import { openRoute } from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import { attemptAll, definePlugin } from "@tscni/skel";
import { ErrorCode } from "@tscni/types";
import { VlanConf } from "./conf.ts";

/** An interface in the container whose frames are those of one VLAN (IEEE 802.1Q) on a master. */
export default definePlugin({
  name: "vlan",
  about: "gives a container an interface in a VLAN of a host's interface",
  conf: VlanConf,

  async add(call, undo) {
    const { master, vlanId, mtu, linkInContainer } = call.conf;
    using sandbox = openNamespace(call.netns);
    using host = openRoute();
    using container = sandbox.enter(openRoute);
    const home = linkInContainer ? container : host;
    const below = findMaster(home, master);
    verifyMtu(mtu, below);
    const link = createContainerLink(home, sandbox, container, {
      kind: "vlan",
      name: call.ifName,
      link: below.index,
      ...(mtu > 0 ? { mtu } : {}),
      vlan: { id: vlanId },
    });
    undo.defer(() => deleteContainerLink(call));

    const lease = await addLease(call, undo);
    undo.defer(() => deleteContainerLink(call)); // before the lease, as in DEL: no interface keeps a free address
    bringUp(sandbox, container, link, lease);
    return containerResult(call, link, lease);
  },

  async del(call) {
    await attemptAll(
      () => releaseOverLink(call),
      () => deleteContainerLink(call),
      () => releaseLease(call),
    );
  },

  async check(call) {
    const { master, vlanId, mtu, linkInContainer } = call.conf;
    await checkLease(call);
    const result = requirePrevResult(call.prevResult);
    using sandbox = openNamespace(call.netns);
    using host = openRoute();
    using container = sandbox.enter(openRoute);
    const link = verifyInterface(container, result, call, "vlan");
    verifyMaster(link, findMaster(linkInContainer ? container : host, master));
    if (link.vlan?.id !== vlanId)
      throw mismatch(`interface ${link.name} is in VLAN ${link.vlan?.id}, not ${vlanId}`);
    if (mtu > 0 && link.mtu !== mtu) throw mismatch(`interface ${link.name} has MTU ${link.mtu}, not ${mtu}`);
  },

  async status(call) {
    using host = openRoute();
    requireKind(host, "vlan");
    // A master in the container can't be there yet.
    if (!call.conf.linkInContainer) findMaster(host, call.conf.master, ErrorCode.PluginNotAvailable);
    await ipamStatus(call);
  },

  /** The link goes with its namespace or its master. */
  async gc(call) {
    await gcLeases(call);
  },
});
