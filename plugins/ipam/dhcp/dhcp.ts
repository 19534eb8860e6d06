import { type Call, definePlugin } from "@tscni/skel";
import { readlink } from "@tscni/sys";
import { CniError, ErrorCode, type Result } from "@tscni/types";
import { ask, DaemonUnreachable } from "./ask.ts";
import { DhcpConf, defaultSocketPath } from "./conf.ts";
import { wishesOf } from "./options.ts";
import type { Attachment, LeaseResult, Request } from "./protocol.ts";

type DhcpCall = Call<DhcpConf>;

/** Has the daemon lease an address and keep it up; `dhcp daemon` is in command.ts. */
export default definePlugin({
  name: "dhcp",
  about: "leases addresses from a DHCP server, kept up by a daemon",
  conf: DhcpConf,
  delNeeds: ["ipam.daemonSocketPath"],

  add(call, undo) {
    const { ipam } = call.conf;
    if (ipam === undefined)
      throw new CniError(ErrorCode.InvalidNetworkConfig, "IPAM config missing 'ipam' key");
    const wishes = wishesOf(ipam, call.args);
    const lease = leaseOf(call, { verb: "ADD", ...attachmentOf(call), netns: netnsOf(call), ...wishes });
    undo.defer(() => release(call));
    return resultOf(lease, call);
  },

  /** Without the daemon there is nobody to ask: it releases by itself what has no interface when it starts. */
  del(call) {
    try {
      release(call);
    } catch (error) {
      if (!(error instanceof DaemonUnreachable)) throw error;
      call.warn(`${error.message}; the lease is released when the daemon starts, or expires`);
    }
  },

  check(call) {
    const lease = leaseOf(call, { verb: "CHECK", ...attachmentOf(call), netns: netnsOf(call) });
    if (call.prevResult && !call.prevResult.ips.some(({ address }) => address === lease.ip.address))
      throw new CniError(ErrorCode.Internal, `dhcp: the lease of ${call.ifName} is ${lease.ip.address}`, {
        details: `prevResult has ${call.prevResult.ips.map(({ address }) => address).join(", ") || "no address"}`,
      });
  },

  status(call) {
    try {
      ask(socketPathOf(call), { verb: "STATUS" });
    } catch (error) {
      if (!(error instanceof CniError)) throw error;
      throw new CniError(ErrorCode.PluginNotAvailable, error.msg, { details: error.details, cause: error });
    }
  },

  gc(call) {
    if (call.validAttachments === undefined) return;
    const valid = call.validAttachments.map(({ containerID, ifname }) => `${containerID} ${ifname}`);
    const answer = ask(socketPathOf(call), { verb: "GC", network: call.network, valid });
    for (const lease of "released" in answer ? answer.released : []) call.warn(`released ${lease}`);
  },
});

function release(call: DhcpCall): void {
  ask(socketPathOf(call), { verb: "DEL", ...attachmentOf(call) });
}

function leaseOf(call: DhcpCall, request: Request): LeaseResult {
  const answer = ask(socketPathOf(call), request);
  if ("lease" in answer) return answer.lease;
  throw new CniError(ErrorCode.Internal, `the DHCP daemon's answer to ${request.verb} has no lease`);
}

const socketPathOf = ({ conf }: DhcpCall): string => conf.ipam?.daemonSocketPath || defaultSocketPath;

const attachmentOf = ({ network, containerId, ifName }: DhcpCall): Attachment => ({
  network,
  containerId,
  ifName,
});

/** The daemon has a working directory of its own. */
const netnsOf = ({ netns }: DhcpCall): string =>
  netns.startsWith("/") ? netns : `${readlink("/proc/self/cwd")}/${netns}`;

function resultOf({ ip, routes, dns }: LeaseResult, { conf }: DhcpCall): Result {
  const priority = conf.ipam?.priority;
  return {
    interfaces: [],
    ips: [ip],
    routes: priority ? routes.map((r) => ({ ...r, priority })) : routes,
    dns,
  };
}
