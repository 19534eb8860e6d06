import { masqBackendOf } from "@tscni/conf";
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
import { addLease, checkLease, gcLeases, ipamStatus, releaseLease, releaseOverLink } from "@tscni/ipam";
import {
  beginDeleteMasquerade,
  beginMasquerade,
  begun,
  deleteMasquerade,
  deleteMasquerades,
  gcMasquerade,
  masqueradeStatus,
  type Pending,
  repairMasquerade,
  verifyMasquerade,
} from "@tscni/masquerade";
import { openRoute, setLink } from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import { attemptAll, type Call, definePlugin, type Undo } from "@tscni/skel";
import { emptyResult, messageOf, type Result } from "@tscni/types";
import { PtpConf } from "./conf.ts";
import {
  configureContainer,
  configureHost,
  prepareHost,
  verifyHost,
  waitForEnds,
  withGateways,
} from "./ends.linux.ts";

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
    // Another process makes the rules, beside us.
    const rules = lease && call.conf.ipMasq ? masquerade(call, addressesOf(lease), undo) : undefined;
    if (lease) {
      prepareHost(veth.host, lease);
      configureContainer(sandbox, container, veth.container, lease);
      configureHost(host, veth.host, lease);
    } else {
      setLink(container, { index: veth.container.index }, { up: true });
    }
    waitUntilUp(host, veth.host.index, veth.host.name);
    waitUntilUp(container, veth.container.index, call.ifName);
    if (lease) waitForEnds(host, container, veth, lease);
    rules?.wait();
    return resultOf(call, veth, lease);
  },

  delNext({ network, ...call }, next) {
    const others = next.map(({ containerID, ifname }) => ({
      network,
      containerId: containerID,
      ifName: ifname,
    }));
    deleteMasquerades([{ ...call, network }, ...others]);
  },

  async del(call) {
    // Deleting either waits for the kernel, 20 ms and more, so they go side by side.
    const rules = begun(() => beginDeleteMasquerade(call, addressesOf(call.prevResult)));
    await attemptAll(
      () => releaseOverLink(call),
      () => removeLink(call),
      () => finish(call, rules), // before the lease: a rule must not outlive its owner's address
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
    if (call.conf.ipMasq) verifyMasquerade(call, addressesOf(result), masqBackendOf(call.conf));
  },

  repair(call) {
    const addresses = addressesOf(requirePrevResult(call.prevResult));
    if (call.conf.ipMasq) repairMasquerade(call, addresses, masqBackendOf(call.conf));
  },

  async status(call) {
    if (call.conf.ipMasq) masqueradeStatus(masqBackendOf(call.conf));
    await ipamStatus(call);
  },

  async gc(call) {
    if (call.validAttachments === undefined) return;
    using host = openRoute();
    await attemptAll(
      () => gcAttachmentLinks(host, call, (link) => link.master === undefined),
      () => gcMasquerade(call.network, call.validAttachments ?? [], call.conf.ipMasq, call.warn),
      () => gcLeases(call),
    );
  },
});

/** On a socket of its own: when an ADD is taken back, those that it had open are closed already. */
function removeLink(call: PtpCall): void {
  using host = openRoute();
  deleteAttachmentLink(host, call, call.netns);
}

const addressesOf = (result: Result = emptyResult()): string[] => result.ips.map(({ address }) => address);

/** Starts masquerading the addresses; undo waits for that and takes it back. */
function masquerade(call: PtpCall, addresses: string[], undo: Undo): Pending {
  let rules: Pending | undefined;
  undo.defer(() => {
    try {
      rules?.wait();
    } catch {} // That is why we are here.
    deleteMasquerade(call, addresses);
  });
  rules = beginMasquerade(call, addresses, masqBackendOf(call.conf));
  return rules;
}

/** A failure to remove rules counts where the config asks for them; otherwise there were most likely none. */
function finish(call: PtpCall, rules: Pending): void {
  try {
    rules.wait();
  } catch (error) {
    if (call.conf.ipMasq) throw error;
    call.warn(messageOf(error));
  }
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
