import { interfaceMac, macOfArgs } from "@tscni/conf";
import {
  bringUp,
  containerResult,
  createContainerLink,
  defaultMaster,
  deleteContainerLink,
  findMaster,
  mismatch,
  requirePrevResult,
  verifyInterface,
  verifyMtu,
} from "@tscni/ip";
import { addLease, checkLease, gcLeases, ipamStatus, releaseLease, releaseOverLink } from "@tscni/ipam";
import { getLink, type Netlink, type NewLink, openRoute } from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import { attemptAll, type Call, definePlugin } from "@tscni/skel";
import { ErrorCode } from "@tscni/types";
import { MacvlanConf, modeOf } from "./conf.ts";

type MacvlanCall = Call<MacvlanConf>;

/** An interface with a MAC address of its own on top of a master, on whose network the container then is. */
export default definePlugin({
  name: "macvlan",
  about: "gives a container an interface of its own on the network of a host's interface",
  conf: MacvlanConf,

  async add(call, undo) {
    using sandbox = openNamespace(call.netns);
    using host = openRoute();
    using container = sandbox.enter(openRoute);
    const home = call.conf.linkInContainer ? container : host;
    const link = createContainerLink(home, sandbox, container, macvlanOf(call, home));
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
    await checkLease(call);
    const result = requirePrevResult(call.prevResult);
    using sandbox = openNamespace(call.netns);
    using host = openRoute();
    using container = sandbox.enter(openRoute);
    const { master, linkInContainer } = call.conf;
    const link = verifyInterface(container, result, call, "macvlan");
    if (link.macvlan?.mode !== modeOf(call.conf))
      throw mismatch(
        `interface ${link.name} is in macvlan mode ${link.macvlan?.mode}, not ${modeOf(call.conf)}`,
      );
    const home = linkInContainer ? container : host;
    const below = master === "" ? getLink(home, { index: link.link ?? 0 }) : findMaster(home, master);
    if (below?.index !== link.link)
      throw mismatch(`interface ${link.name} is not on top of ${below?.name ?? "anything"}`);
  },

  /** A master in the container is there when it is there. */
  async status(call) {
    using host = openRoute();
    if (!call.conf.linkInContainer) masterOf(call, host, ErrorCode.PluginNotAvailable);
    await ipamStatus(call);
  },

  /** The link goes with its namespace, or with its master. */
  async gc(call) {
    await gcLeases(call);
  },
});

function macvlanOf(call: MacvlanCall, home: Netlink): NewLink {
  const { conf, args } = call;
  const fromArgs = macOfArgs(args);
  const address = interfaceMac(conf.runtimeConfig?.mac || fromArgs || conf.mac);
  return {
    kind: "macvlan",
    name: call.ifName,
    link: masterOf(call, home).index,
    ...(address ? { address } : {}),
    ...(conf.mtu > 0 ? { mtu: conf.mtu } : {}),
    macvlan: { mode: modeOf(conf), ...(conf.bcqueuelen > 0 ? { bcQueueLen: conf.bcqueuelen } : {}) },
  };
}

/** The master, without one in the config the interface of the default route. Throws when the MTU does not fit on it. */
function masterOf({ conf }: MacvlanCall, home: Netlink, code?: number) {
  const master = findMaster(home, conf.master || defaultMaster(home, code), code);
  verifyMtu(conf.mtu, master);
  return master;
}
