import { bringUp, containerResult, dnsOf, nameTaken, requirePrevResult, verifyInterface } from "@tscni/ip";
import { addLease, checkLease, gcLeases, ipamStatus, releaseLease, releaseOverLink } from "@tscni/ipam";
import { getLink, openRoute } from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import { listRecords, staleRecords } from "@tscni/record";
import { attemptAll, type Call, definePlugin } from "@tscni/skel";
import { CniError, ErrorCode, emptyResult, type Result } from "@tscni/types";
import { HostDeviceConf } from "./conf.ts";
import { nothingNamed, type Place, placeOf } from "./find.linux.ts";
import { type Away, bringHome, kind, moveIn, reclaim, recordDevice } from "./move.linux.ts";

type HostDeviceCall = Call<HostDeviceConf>;

/** A device of the host that the container has to itself as long as it lives. */
export default definePlugin({
  name: "host-device",
  about: "moves a device of the host into a container and back",
  conf: HostDeviceConf,

  async add(call, undo) {
    const { ifName, conf } = call;
    const place = placeOf(conf);
    if (place.userspace) return passThrough(call, place, await addLease(call, undo));
    using sandbox = openNamespace(call.netns);
    using host = openRoute();
    using container = sandbox.enter(openRoute);
    const device = place.find(host);
    if (getLink(container, { name: ifName }) !== undefined) throw nameTaken(ifName);
    recordDevice(call, device);
    undo.defer(() => bringHome(call, call.warn, true)); // before the move, which can be refused half-way
    const link = moveIn(host, sandbox, container, device, ifName);
    const lease = await addLease(call, undo);
    if (lease) undo.defer(() => bringHome(call, call.warn, true)); // before the lease, as in DEL
    bringUp(sandbox, container, link, lease);
    const result = containerResult(call, link, lease);
    if (place.pciID) result.interfaces[0]!.pciID = place.pciID;
    return result;
  },

  async del(call) {
    await attemptAll(
      () => releaseOverLink(call),
      () => bringHome(call, call.warn),
      () => releaseLease(call),
    );
  },

  async check(call) {
    await checkLease(call);
    const result = requirePrevResult(call.prevResult);
    if (placeIsUserspace(call)) return;
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);
    verifyInterface(container, result, call, undefined);
  },

  /** The device is here, or in a container of the network's, as it should. A runtime's choice comes with each ADD. */
  async status(call) {
    const { conf, network } = call;
    if (namesDevice(conf)) {
      using host = openRoute();
      const inUse = listRecords<Away>(kind, network).length > 0;
      const place = placeOf(conf, ErrorCode.PluginNotAvailable);
      if (!inUse && !place.userspace) place.find(host);
    } else if (!conf.capabilities?.deviceID) {
      throw nothingNamed();
    }
    await ipamStatus(call);
  },

  async gc(call) {
    const { network, validAttachments: valid } = call;
    if (valid === undefined) return;
    const stale = staleRecords<Away>(kind, network, valid, call.warn);
    await attemptAll(...stale.map((each) => () => reclaim(each, each.data, call.warn)), () => gcLeases(call));
  },
});

const namesDevice = ({ device, hwaddr, kernelpath, pciBusID }: HostDeviceConf): boolean =>
  Boolean(device || hwaddr || kernelpath || pciBusID);

/** A device that has left the bus since is told by its interface, or not at all. */
function placeIsUserspace({ conf }: HostDeviceCall): boolean {
  try {
    return placeOf(conf).userspace;
  } catch (error) {
    if (error instanceof CniError) return false;
    throw error;
  }
}

/** A program in the container drives the device by itself: nothing is moved, but the addresses are its. */
function passThrough(call: HostDeviceCall, { pciID }: Place, lease: Result = emptyResult()): Result {
  return {
    interfaces: [{ name: call.ifName, sandbox: call.netns, ...(pciID ? { pciID } : {}) }],
    ips: lease.ips.map((ip) => ({ ...ip, interface: 0 })),
    routes: lease.routes,
    dns: dnsOf(call.conf.dns, lease),
  };
}
