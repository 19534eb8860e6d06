import {
  createVeth,
  deleteAttachmentLink,
  dnsOf,
  gcAttachmentLinks,
  interfaceOf,
  requirePrevResult,
  type Veth,
  verifyInterface,
  verifyPeer,
  waitUntilUp,
} from "@tscni/ip";
import { addLease, checkLease, gcLeases, ipamStatus, releaseLease } from "@tscni/ipam";
import { openRoute, setLink } from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import { attemptAll, type Call, definePlugin } from "@tscni/skel";
import { emptyResult, type Result } from "@tscni/types";
import { PtpConf } from "./conf.ts";
import { configureContainer, configureHost, prepareHost, verifyHost, withGateways } from "./ends.linux.ts";

type PtpCall = Call<PtpConf>;

/** A veth pair between the container and the host, which routes for it: no bridge, no neighbours. */
export default definePlugin({
  name: "ptp",
  about: "connects a container to the host by a link of the two alone",
  conf: PtpConf,

  async add(call, undo) {
    using sandbox = openNamespace(call.netns);
    using host = openRoute();
    using container = sandbox.enter(openRoute);
    const veth = createVeth(host, sandbox, container, call, { mtu: call.conf.mtu });
    undo.defer(() => removeLink(call));
    const leased = await addLease(call, undo);
    if (leased) undo.defer(() => removeLink(call)); // before the lease, as in DEL: no interface keeps a free address
    const lease = leased && withGateways(leased);
    if (lease) {
      prepareHost(veth.host, lease);
      configureContainer(sandbox, container, veth.container, lease);
      configureHost(host, veth.host, lease);
    } else {
      setLink(container, { index: veth.container.index }, { up: true });
    }
    waitUntilUp(host, veth.host.index, veth.host.name);
    waitUntilUp(container, veth.container.index, call.ifName);
    return resultOf(call, veth, lease);
  },

  async del(call) {
    await attemptAll(
      () => removeLink(call),
      () => releaseLease(call),
    );
  },

  async check(call) {
    await checkLease(call);
    const result = requirePrevResult(call.prevResult);
    using host = openRoute();
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);
    const link = verifyInterface(container, result, call, "veth");
    const position = result.interfaces.findIndex((i) => i.name === call.ifName && i.sandbox === call.netns);
    verifyHost(
      host,
      verifyPeer(host, result, link),
      result.ips.filter((ip) => ip.interface === position),
    );
  },

  async status(call) {
    await ipamStatus(call);
  },

  async gc(call) {
    if (call.validAttachments === undefined) return;
    using host = openRoute();
    await attemptAll(
      () => gcAttachmentLinks(host, call, (link) => link.master === undefined),
      () => gcLeases(call),
    );
  },
});

/** On a socket of its own: when an ADD is taken back, those that it had open are closed already. */
function removeLink(call: PtpCall): void {
  using host = openRoute();
  deleteAttachmentLink(host, call, call.netns);
}

/** The host's end and the container's, which has the addresses. */
function resultOf(call: PtpCall, veth: Veth, lease: Result = emptyResult()): Result {
  return {
    interfaces: [interfaceOf(veth.host), { ...interfaceOf(veth.container), sandbox: call.netns }],
    ips: lease.ips.map((ip) => ({ ...ip, interface: 1 })),
    routes: lease.routes,
    dns: dnsOf(call.conf.dns, lease),
  };
}
