import { cidrText, ipText } from "@tscni/addr";
import { routesOf } from "@tscni/conf";
import { type Call, definePlugin } from "@tscni/skel";
import { isErrno, readTextFile } from "@tscni/sys";
import { CniError, type Dns, ErrorCode, joinErrors, messageOf, type Result } from "@tscni/types";
import type { Picked } from "./allocate.ts";
import { releaseEarlierBoots } from "./boot.ts";
import { defaultDataDir, HostLocalConf } from "./conf.ts";
import { readCooling } from "./cooling.ts";
import { networkDir } from "./folder.ts";
import type { Owner } from "./ledger.ts";
import { type RangeSet, rangeSetsOf } from "./ranges.ts";
import { releaseEach, releaseInvalid, releaseUsed } from "./release.ts";
import { requestedIps } from "./requests.ts";
import { reserve } from "./reserve.ts";
import { parseResolvConf } from "./resolv.ts";
import { withStore, withStoreIfPresent } from "./store.ts";
import { poolsOf, poolText } from "./usage.ts";

type HostLocalCall = Call<HostLocalConf>;

export default definePlugin({
  name: "host-local",
  about: "hands out addresses of local ranges, remembered in files",
  conf: HostLocalConf,
  delNeeds: ["ipam.dataDir"],

  add(call, undo) {
    const request = {
      sets: requiredRangeSets(call),
      requested: requestedIps(call.conf, call.args),
      owner: ownerOf(call),
      cooldown: cooldownOf(call),
    };
    const dns = dnsOf(call.conf.ipam?.resolvConf ?? "");
    const picks = withStore(dirOf(call), (store) => {
      releaseEarlierBoots(store, call.warn);
      const reserved = reserve(store, request);
      store.save();
      return reserved;
    });
    undo.defer(() => takeBack(call, picks));
    return resultOf(picks, call.conf, dns);
  },

  del(call) {
    withStoreIfPresent(dirOf(call), (store) => {
      const ips = store.ipsOf(ownerOf(call));
      const failures = releaseUsed(store, ips, cooldownOf(call), call.warn);
      store.save();
      throwAll(failures);
    });
  },

  check(call) {
    requiredRangeSets(call);
    const found = withStoreIfPresent(dirOf(call), (store) => store.ipsOf(ownerOf(call)).length > 0);
    if (!found)
      throw new CniError(
        ErrorCode.Internal,
        `host-local: Failed to find address added by container ${call.containerId}`,
        { details: `no reservation of ${call.containerId} ${call.ifName} in ${dirOf(call)}` },
      );
  },

  status(call) {
    const sets = rangeSetsOf(call.conf, call.cniVersion);
    const dir = dirOf(call);
    const pools = unavailableUnless(() =>
      withStore(dir, (store) => {
        store.probe();
        return poolsOf(sets, store.ledger, readCooling(store.folder, cooldownOf(call)));
      }),
    );
    const exhausted = pools.filter((pool) => pool.free === 0n).map((pool) => poolText(pool, dir));
    if (exhausted.length === 0) return;
    if (call.conf.ipam?.reportExhausted)
      throw new CniError(ErrorCode.PluginNotAvailable, "no free addresses", {
        details: exhausted.join("\n"),
      });
    for (const text of exhausted) call.warn(text);
  },

  gc(call) {
    const valid = call.validAttachments;
    if (valid === undefined) return;
    const ids = new Set(valid.map((a) => a.containerID));
    const pairs = new Set(valid.map((a) => `${a.containerID} ${a.ifname}`));
    const isValid = ({ containerId, ifName }: Owner) =>
      ifName === "" ? ids.has(containerId) : pairs.has(`${containerId} ${ifName}`);
    withStoreIfPresent(dirOf(call), (store) => {
      const failures = releaseInvalid(store, isValid, cooldownOf(call), call.warn);
      store.save();
      throwAll(failures);
    });
  },
});

/** For when a later step of the ADD fails, such as writing the result. Nobody used the addresses: none cools. */
function takeBack(call: HostLocalCall, picks: readonly Picked[]): void {
  withStoreIfPresent(dirOf(call), (store) => {
    const failures = releaseEach(
      store,
      picks.map(({ ip }) => ipText(ip)),
    );
    store.save();
    throwAll(failures);
  });
}

function throwAll(failures: readonly unknown[]): void {
  const joined = joinErrors(failures);
  if (joined) throw joined;
}

function unavailableUnless<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new CniError(ErrorCode.PluginNotAvailable, messageOf(error), { cause: error });
  }
}

const ownerOf = ({ containerId, ifName }: HostLocalCall): Owner => ({ containerId, ifName });

const cooldownOf = (call: HostLocalCall): number => call.conf.ipam?.cooldown ?? 0;

const dirOf = (call: HostLocalCall): string =>
  networkDir(call.conf.ipam?.dataDir || defaultDataDir, call.network);

function requiredRangeSets(call: HostLocalCall): RangeSet[] {
  if (call.conf.ipam === undefined)
    throw new CniError(ErrorCode.InvalidNetworkConfig, "IPAM config missing 'ipam' key");
  const sets = rangeSetsOf(call.conf, call.cniVersion);
  if (sets.length === 0) throw new CniError(ErrorCode.InvalidNetworkConfig, "no IP ranges specified");
  return sets;
}

function dnsOf(path: string): Dns {
  if (path === "") return {};
  try {
    return parseResolvConf(readTextFile(path));
  } catch (error) {
    if (!isErrno(error, "ENOENT", "ENOTDIR", "EACCES", "EISDIR")) throw error;
    throw new CniError(ErrorCode.IoFailure, `ipam.resolvConf: ${messageOf(error)}`, { cause: error });
  }
}

function resultOf(picks: readonly Picked[], conf: HostLocalConf, dns: Dns): Result {
  return {
    interfaces: [],
    ips: picks.map(({ ip, range }) => ({
      address: cidrText({ ip, prefix: range.subnet.prefix }),
      gateway: ipText(range.gateway),
    })),
    routes: routesOf(conf.ipam?.routes),
    dns,
  };
}
