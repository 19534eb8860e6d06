import {
  bringUp,
  containerResult,
  createContainerLink,
  defaultMaster,
  deleteContainerLink,
  findMaster,
  mismatch,
  requireKind,
  requirePrevResult,
  verifyInterface,
  verifyMaster,
  verifyMtu,
} from "@tscni/ip";
import {
  addLease,
  checkLease,
  gcLeases,
  hasIpam,
  ipamStatus,
  releaseLease,
  releaseOverLink,
} from "@tscni/ipam";
import { getLink, type Netlink, openRoute } from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import { attemptAll, type Call, definePlugin } from "@tscni/skel";
import { CniError, ErrorCode, type Result } from "@tscni/types";
import { IpvlanConf, modeOf, modes } from "./conf.ts";

type IpvlanCall = Call<IpvlanConf>;

/** An interface in the container that shares the MAC address of its master, and its network. */
export default definePlugin({
  name: "ipvlan",
  about: "gives a container an interface that shares a host's interface and its MAC address",
  conf: IpvlanConf,

  async add(call, undo) {
    const { mtu, linkInContainer } = call.conf;
    using sandbox = openNamespace(call.netns);
    using host = openRoute();
    using container = sandbox.enter(openRoute);
    const home = linkInContainer ? container : host;
    const master = findMaster(home, masterNameOf(call, home));
    verifyMtu(mtu, master);
    const link = createContainerLink(home, sandbox, container, {
      kind: "ipvlan",
      name: call.ifName,
      link: master.index,
      ...(mtu > 0 ? { mtu } : {}),
      ipvlan: { mode: modeOf(call.conf) },
    });
    undo.defer(() => deleteContainerLink(call));

    const lease = (await addLease(call, undo)) ?? addressesBefore(call);
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
    const { master, linkInContainer } = call.conf;
    await checkLease(call);
    const result = requirePrevResult(call.prevResult);
    using sandbox = openNamespace(call.netns);
    using host = openRoute();
    using container = sandbox.enter(openRoute);
    const home = linkInContainer ? container : host;
    const link = verifyInterface(container, result, call, "ipvlan");
    const below = master === "" ? getLink(home, { index: link.link ?? 0 }) : findMaster(home, master);
    verifyMaster(link, below);
    const mode = link.ipvlan?.mode;
    if (mode !== modeOf(call.conf))
      throw mismatch(
        `Container IPVlan mode ${modes[mode ?? 0]} does not match expected value: ${modes[modeOf(call.conf)]}`,
      );
  },

  async status(call) {
    const { master, linkInContainer } = call.conf;
    using host = openRoute();
    requireKind(host, "ipvlan");
    // A master in the container, or of a plugin before this one, can't be there yet.
    if (master !== "" && !linkInContainer) findMaster(host, master, ErrorCode.PluginNotAvailable);
    await ipamStatus(call);
  },

  /** The link goes with its namespace or its master. */
  async gc(call) {
    await gcLeases(call);
  },
});

/** The master that the config names; else the one interface of the plugin before; else the default route's. */
function masterNameOf({ conf, prevResult }: IpvlanCall, home: Netlink): string {
  if (conf.master !== "") return conf.master;
  if (prevResult === undefined) return defaultMaster(home);
  const [only, ...others] = prevResult.interfaces;
  if (!only?.name || others.length > 0)
    throw new CniError(
      ErrorCode.InvalidNetworkConfig,
      "chained master failure. PrevResult lacks a single named interface",
      { details: `it has ${prevResult.interfaces.length}; name one in the key "master"` },
    );
  return only.name;
}

/** What the plugin before handed out, for a config without IPAM. */
function addressesBefore(call: IpvlanCall): Result | undefined {
  const { prevResult } = call;
  return !hasIpam(call) && prevResult !== undefined && prevResult.ips.length > 0 ? prevResult : undefined;
}
