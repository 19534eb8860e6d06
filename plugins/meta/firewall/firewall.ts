import { hasRecord, type Owner } from "@tscni/record";
import { type Call, definePlugin } from "@tscni/skel";
import { CniError, ErrorCode, messageOf, type Result } from "@tscni/types";
import { backendOf, FirewallConf } from "./conf.ts";
import { isolatePorts, verifyIsolated } from "./port.linux.ts";
import { protect, reprotect, verifyProtection, verifyUsable } from "./protect.linux.ts";
import { type Wanted, wantedOf } from "./protection.ts";
import { kind, release, releaseNext, releaseStale } from "./release.linux.ts";

type FirewallCall = Call<FirewallConf>;

/** Lets the addresses that the plugins before it gave through the host's firewall, and keeps bridges apart. */
export default definePlugin({
  name: "firewall",
  about: "lets containers' traffic through the host's firewall",
  conf: FirewallConf,

  add(call, undo) {
    const result = previous(call);
    const wanted = wantedOf(call.conf, result);
    // As the reference: without an address there is nothing to let through, and no policy either.
    if (wanted.addresses.length === 0) return result;
    if (wanted.policy?.name === "isolated") undo.defer(isolatePorts(result, wanted.policy.bridge));
    undo.defer(() => release(call, wanted, backendOf(call.conf), call.warn));
    protect(call, wanted, backendOf(call.conf));
    return result;
  },

  del(call) {
    release(call, wantedIfKnown(call), backendOf(call.conf), call.warn);
  },

  check(call) {
    const result = previous(call);
    const wanted = wantedOf(call.conf, result);
    if (wanted.addresses.length === 0) return;
    verifyProtection(call, wanted, backendOf(call.conf));
    // The Go plugin isolates no ports; what it added has no record.
    if (wanted.policy?.name === "isolated" && hasRecord(kind, call))
      verifyIsolated(result, wanted.policy.bridge);
  },

  status({ conf }) {
    try {
      verifyUsable(
        backendOf(conf),
        conf.ingressPolicy === "same-bridge" || conf.ingressPolicy === "isolated",
      );
    } catch (error) {
      throw new CniError(ErrorCode.PluginNotAvailable, messageOf(error), { cause: error });
    }
  },

  gc({ network, validAttachments, warn }) {
    if (validAttachments !== undefined) releaseStale(network, validAttachments, warn);
  },

  repair(call) {
    const result = previous(call);
    const wanted = wantedOf(call.conf, result);
    if (wanted.addresses.length === 0) return;
    if (wanted.policy?.name === "isolated") isolatePorts(result, wanted.policy.bridge);
    reprotect(call, wanted, backendOf(call.conf));
  },

  delNext({ network, warn }, next) {
    const owners = next.map(({ containerID, ifname }): Owner => {
      return { network, containerId: containerID, ifName: ifname };
    });
    releaseNext(owners, warn);
  },
});

function previous({ prevResult }: FirewallCall): Result {
  if (prevResult === undefined)
    throw new CniError(ErrorCode.InvalidNetworkConfig, "missing prevResult from earlier plugin");
  return prevResult;
}

/** What a DEL without a record goes by. A policy that can't be understood is no hindrance. */
function wantedIfKnown({ conf, prevResult }: FirewallCall): Wanted | undefined {
  return prevResult && wantedOf({ ...conf, ingressPolicy: "open" }, prevResult);
}
