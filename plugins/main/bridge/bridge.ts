import { interfaceMac, macOfArgs } from "@tscni/conf";
import {
  announceAddresses,
  configureInterface,
  containerInterfaceOf,
  createVeth,
  deleteAttachmentLink,
  gcAttachmentLinks,
  interfaceOf,
  ipv6Of,
  prepareInterface,
  requirePrevResult,
  type Veth,
  verifyInterface,
  waitUntilUnique,
  waitUntilUp,
  waitUntilUsable,
  writeSysctlIfPresent,
} from "@tscni/ip";
import { addLease, checkLease, gcLeases, ipamStatus, releaseLease, releaseOverLink } from "@tscni/ipam";
import { getLink, type Link, openRoute, setLink } from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import { attemptAll, type Call, definePlugin } from "@tscni/skel";
import { type Dns, emptyResult, type Result } from "@tscni/types";
import { ensureBridge, verifyBridge, verifyBridgeName } from "./bridge.linux.ts";
import { BridgeConf } from "./conf.ts";
import { ensureGateways, waitForGateways, withGateways } from "./gateway.linux.ts";
import { joinPort, verifyPort } from "./port.linux.ts";
import {
  beginDeleteRules,
  beginRules,
  deleteRulesOf,
  gcRules,
  repairRules,
  rulesStatus,
  verifyRules,
} from "./rules.linux.ts";

type BridgeCall = Call<BridgeConf>;

/** A Linux bridge on the host, and for each container a veth pair whose host end is one of its ports. */
export default definePlugin({
  name: "bridge",
  about: "connects containers to a Linux bridge",
  conf: BridgeConf,

  async add(call, undo) {
    const mac = macOf(call);
    using sandbox = openNamespace(call.netns);
    using host = openRoute();
    const bridge = ensureBridge(host, call.conf);

    using container = sandbox.enter(openRoute);
    const veth = createVeth(host, sandbox, container, call, {
      mtu: call.conf.mtu,
      mac,
      master: bridge.index,
    });
    undo.defer(() => removeLink(call));
    joinPort(host, veth.host.index, call.conf);

    const lease = await addLease(call, undo);
    if (lease) undo.defer(() => removeLink(call)); // before the lease, as in DEL: no interface keeps a free address
    const result = resultOf(call, bridge, veth, lease && withGateways(lease, call.conf));
    // They take another process, which works beside us from here.
    const rules = needsRules(call) ? beginRules(call, result, veth.container.address, undo) : undefined;
    let gateway = bridge;
    if (lease) {
      sandbox.enter(() => prepareContainer(call, result));
      const onVlan = ensureGateways(host, bridge, result, call.conf);
      if (onVlan) result.interfaces.push(interfaceOf(onVlan));
      gateway = onVlan ?? bridge;
      configureInterface(container, veth.container.index, result, { detectDuplicates: call.conf.enabledad });
    } else if (!call.conf.disableContainerInterface) {
      setLink(container, { index: veth.container.index }, { up: true });
    }
    if (!call.conf.disableContainerInterface) {
      waitUntilUp(host, veth.host.index);
      waitUntilUp(container, veth.container.index, call.ifName);
    }
    if (lease && call.conf.enabledad) {
      waitUntilUnique(container, veth.container.index);
      waitUntilUnique(host, gateway.index);
    }
    if (lease) {
      waitUntilUsable(container, veth.container.index, ipv6Of(result));
      waitForGateways(host, gateway, result, call.conf);
      announceAddresses(sandbox, container, veth.container, lease);
    }

    rules?.wait();

    // The bridge takes its first port's address unless it was given one.
    result.interfaces[0] = interfaceOf(getLink(host, { index: bridge.index }) ?? bridge);
    return result;
  },

  delNext: deleteRulesOf,

  async del(call) {
    // Deleting either waits for the kernel, 20 ms and more, so they go side by side.
    const rules = beginDeleteRules(call);
    await attemptAll(
      () => releaseOverLink(call),
      () => removeLink(call),
      () => rules.wait(), // before the lease: a rule must not outlive its owner's address
      () => releaseLease(call),
    );
  },

  async check(call) {
    await checkLease(call);
    const result = requirePrevResult(call.prevResult);
    using host = openRoute();
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);

    const bridge = verifyBridge(host, call.conf, result);
    const link = verifyInterface(container, result, call, "veth");
    verifyPort(host, bridge, result, link);
    verifyRules(call, result, link.address);
  },

  repair(call) {
    const result = requirePrevResult(call.prevResult);
    if (needsRules(call))
      repairRules(call, result, containerInterfaceOf(result, call.ifName, call.netns).mac);
  },

  async status(call) {
    using host = openRoute();
    verifyBridgeName(host, call.conf);
    rulesStatus(call);
    await ipamStatus(call);
  },

  async gc(call) {
    if (call.validAttachments === undefined) return;
    using host = openRoute();
    const bridge = getLink(host, { name: call.conf.bridge });
    await attemptAll(
      () =>
        gcAttachmentLinks(host, call, (link) => link.master !== undefined && link.master === bridge?.index),
      () => gcRules(call, call.validAttachments ?? []),
      () => gcLeases(call),
    );
  },
});

const needsRules = ({ conf }: BridgeCall): boolean => conf.ipMasq || conf.macspoofchk;

/** On a socket of its own: when an ADD is taken back, those that it had open are closed already. */
function removeLink(call: BridgeCall): void {
  using host = openRoute();
  deleteAttachmentLink(host, call, call.netns);
}

/** MAC address for the container's end: CNI_ARGS, then args.cni.mac, then the mac capability; the last given wins. */
const macOf = ({ args, conf }: BridgeCall): string | undefined => {
  const fromArgs = macOfArgs(args);
  return interfaceMac(conf.runtimeConfig?.mac || conf.args?.cni?.mac || fromArgs);
};

/** The sysctls of the container's interface, while it is still down. */
function prepareContainer({ conf, ifName }: BridgeCall, result: Result): void {
  const dad = conf.enabledad ? "1" : "0";
  writeSysctlIfPresent(`net/ipv6/conf/${ifName}/enhanced_dad`, dad);
  writeSysctlIfPresent(`net/ipv6/conf/${ifName}/accept_dad`, dad);
  prepareInterface(ifName, result);
}

/** The interfaces: bridge, host end, container end, and the VLAN's gateway if there is one. */
function resultOf(call: BridgeCall, bridge: Link, veth: Veth, lease: Result | undefined): Result {
  const base = lease ?? emptyResult();
  return {
    ...base,
    interfaces: [
      interfaceOf(bridge),
      interfaceOf(veth.host),
      { ...interfaceOf(veth.container), sandbox: call.netns },
    ],
    ips: base.ips.map((ip) => ({ ...ip, interface: 2 })),
    dns: Object.keys(call.conf.dns ?? {}).length > 0 ? (call.conf.dns as Dns) : base.dns,
  };
}
