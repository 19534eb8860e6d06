import { interfaceMac, macOfArgs } from "@tscni/conf";
import { bringUp, containerResult, deleteContainerLink, requirePrevResult, verifyInterface } from "@tscni/ip";
import { addLease, checkLease, gcLeases, ipamStatus, releaseLease, releaseOverLink } from "@tscni/ipam";
import { getLink, type Link, type Netlink, openRoute, setLink } from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import { attemptAll, type Call, definePlugin } from "@tscni/skel";
import { CniError, ErrorCode } from "@tscni/types";
import { TapConf } from "./conf.ts";
import { createLabelledTap, createTap, findBridge, verifyTap, verifyTun } from "./tap.linux.ts";

type TapCall = Call<TapConf>;

/** A tap device in the container, for a virtual machine or another program that speaks Ethernet through it. */
export default definePlugin({
  name: "tap",
  about: "makes a tap device in a container",
  conf: TapConf,

  async add(call, undo) {
    const { conf, ifName } = call;
    const settings = settingsOf(call);
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);
    const master = conf.bridge ? findBridge(container, conf.bridge).index : undefined;
    if (conf.selinuxContext) createLabelledTap(sandbox, container, ifName, conf);
    else createTap(sandbox, ifName, conf);
    undo.defer(() => deleteContainerLink(call));
    const link = configureTap(container, ifName, { ...settings, master });
    const lease = await addLease(call, undo);
    if (lease) undo.defer(() => deleteContainerLink(call)); // before the lease, as in DEL
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
    await checkLease(call);
    const result = requirePrevResult(call.prevResult);
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);
    verifyTap(container, verifyInterface(container, result, call, "tun"), call.conf);
  },

  async status(call) {
    verifyTun();
    await ipamStatus(call);
  },

  /** The device goes with its namespace. */
  async gc(call) {
    await gcLeases(call);
  },
});

function settingsOf({ conf, args }: TapCall): { address?: string; mtu?: number } {
  const fromArgs = macOfArgs(args);
  const address = interfaceMac(conf.runtimeConfig?.mac || fromArgs || conf.mac);
  return { ...(address ? { address } : {}), ...(conf.mtu > 0 ? { mtu: conf.mtu } : {}) };
}

/** Sets what can't be set when a tap device is made. */
function configureTap(
  container: Netlink,
  ifName: string,
  settings: { address?: string; mtu?: number; master: number | undefined },
): Link {
  if (Object.values(settings).some((value) => value !== undefined))
    setLink(container, { name: ifName }, settings);
  const link = getLink(container, { name: ifName });
  if (link === undefined) throw new CniError(ErrorCode.Internal, `interface ${ifName} is gone again`);
  return link;
}
