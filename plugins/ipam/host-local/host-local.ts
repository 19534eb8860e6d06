import { cidrText, type Ip, ipText, parseCidr, parseIp } from "@tscni/addr";
import { type Call, definePlugin, type Undo } from "@tscni/skel";
import { isErrno, readTextFile } from "@tscni/sys";
import { CniError, type Dns, ErrorCode, joinErrors, messageOf, type Result, type Route } from "@tscni/types";
import { allocate, type Pick, type Reservations } from "./allocate.ts";
import { releaseEarlierBoots } from "./boot.ts";
import { defaultDataDir, HostLocalConf, type RouteConf } from "./conf.ts";
import { readCooling, startCooling } from "./cooling.ts";
import type { Owner } from "./ledger.ts";
import { type RangeSet, rangeSetsOf } from "./ranges.ts";
import { requestedIps } from "./requests.ts";
import { parseResolvConf } from "./resolv.ts";
import { networkDir, type Store, withStore, withStoreIfPresent } from "./store.ts";
import { poolsOf, poolText } from "./usage.ts";

type HostLocalCall = Call<HostLocalConf>;

export default definePlugin({
  name: "host-local",
  about: "hands out addresses of local ranges, remembered in files",
  conf: HostLocalConf,
  delNeeds: ["ipam.dataDir"],

  add(call, undo) {
    const sets = requiredRangeSets(call);
    const requested = requestedIps(call.conf, call.args);
    const dns = dnsOf(call.conf.ipam?.resolvConf ?? "");
    const picks = withStore(dirOf(call), (store) => {
      releaseEarlierBoots(store, call.warn);
      const reserved = reserve(store, sets, requested, call);
      store.save();
      return reserved;
    });
    undoWith(undo, call, picks);
    return resultOf(picks, call.conf, dns);
  },

  del(call) {
    withStoreIfPresent(dirOf(call), (store) => {
      const owner = ownerOf(call);
      const ips = ownedIps(store, owner);
      cool(store, ips, call);
      for (const ip of ips) store.release(ip);
      store.save();
    });
  },

  check(call) {
    requiredRangeSets(call);
    const found = withStoreIfPresent(dirOf(call), (store) => ownedIps(store, ownerOf(call)).length > 0);
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
        return poolsOf(sets, store.ledger, readCooling(store, cooldownOf(call)));
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
    const isValid = (owner: Owner) =>
      owner.ifName === "" ? ids.has(owner.containerId) : pairs.has(`${owner.containerId} ${owner.ifName}`);
    withStoreIfPresent(dirOf(call), (store) => releaseInvalid(store, isValid, call));
  },
});

/** Reserves an address of every set, or none. */
function reserve(
  store: Store,
  sets: readonly RangeSet[],
  requested: readonly Ip[],
  call: HostLocalCall,
): Pick[] {
  const owner = ownerOf(call);
  const cooling = readCooling(store, cooldownOf(call));
  // A second round comes only when a file was made behind the back of the lock; it reads all files anew.
  for (let round = 0; round < 8; round++) {
    const picks = explained(store, sets, cooling, () =>
      allocate(sets, requested, reservationsOf(store, owner, cooling), call.containerId),
    );
    const done: string[] = [];
    try {
      if (picks.every(({ ip }) => store.reserve(ipText(ip), owner) && done.push(ipText(ip)))) {
        for (const { set, ip } of picks) store.setLastReserved(set, ipText(ip));
        return picks;
      }
    } catch (error) {
      releaseAll(store, done);
      throw error;
    }
    releaseAll(store, done);
    store.rescan();
  }
  throw new CniError(ErrorCode.TryAgainLater, `reservations in ${store.dir} change without taking its lock`);
}

/** Adds to the error of a pool that has nothing to give how full the pools are, and whose the addresses are. */
function explained<T>(
  store: Store,
  sets: readonly RangeSet[],
  cooling: ReadonlyMap<string, number>,
  work: () => T,
): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof CniError) || error.code !== ErrorCode.TryAgainLater) throw error;
    const full = poolsOf(sets, store.ledger, cooling).filter((pool) => pool.free === 0n);
    const details = [error.details, ...full.map((pool) => poolText(pool, store.dir))].filter(Boolean);
    throw new CniError(error.code, error.msg, { details: details.join("; "), cause: error });
  }
}

function reservationsOf(store: Store, owner: Owner, cooling: ReadonlyMap<string, number>): Reservations {
  return {
    isTaken: (ip) => store.ledger.has(ipText(ip)),
    isCooling: (ip) => cooling.size > 0 && cooling.has(ipText(ip)),
    lastReserved: (set) => store.lastReserved(set),
    own: [...ownedIps(store, owner), ...store.ledger.ipsOf({ ...owner, ifName: "" })]
      .map(parseIp)
      .filter((ip) => ip !== undefined),
  };
}

/** The owner's addresses, each looked up in its file; when the index is wrong about one, in every file. */
function ownedIps(store: Store, owner: Owner): string[] {
  const ips = store.ipsOf(owner);
  const isRight = (ip: string) => {
    const found = store.ownerOf(ip);
    return found?.containerId === owner.containerId && (found.ifName === owner.ifName || found.ifName === "");
  };
  if (ips.every(isRight)) return ips;
  store.rescan();
  return store.ipsOf(owner);
}

function releaseAll(store: Store, ips: readonly string[]): void {
  for (const ip of ips) store.release(ip);
}

/** Takes the picks back when a later step of the ADD fails, such as writing the result. */
function undoWith(undo: Undo, call: HostLocalCall, picks: readonly Pick[]): void {
  undo.defer(() => {
    withStoreIfPresent(dirOf(call), (store) => {
      releaseAll(
        store,
        picks.map(({ ip }) => ipText(ip)),
      );
      store.save();
    });
  });
}

/** Removes every reservation that is not valid, going on past those that cannot be removed. */
function releaseInvalid(store: Store, isValid: (owner: Owner) => boolean, call: HostLocalCall): void {
  const errors: unknown[] = [];
  const stale: string[] = [];
  for (const ip of store.addressFiles().sort()) {
    const owner = store.ownerOf(ip);
    if (owner && isValid(owner)) continue;
    stale.push(ip);
  }
  cool(store, stale, call);
  for (const ip of stale) {
    const owner = store.ownerOf(ip);
    try {
      store.release(ip);
      call.warn(`released ${ip} of ${owner ? `${owner.containerId} ${owner.ifName}`.trim() : "nobody"}`);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) store.forget();
  store.save();
  const joined = joinErrors(errors.map((e) => new CniError(ErrorCode.IoFailure, messageOf(e), { cause: e })));
  if (joined) throw joined;
}

/** A release matters more than its cooling: a full disk must not keep addresses in use. */
function cool(store: Store, ips: readonly string[], call: HostLocalCall): void {
  try {
    startCooling(store, ips, cooldownOf(call));
  } catch (error) {
    call.warn(`released addresses will not cool down: ${messageOf(error)}`);
  }
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

function resultOf(picks: readonly Pick[], conf: HostLocalConf, dns: Dns): Result {
  return {
    interfaces: [],
    ips: picks.map(({ ip, range }) => ({
      address: cidrText({ ip, prefix: range.subnet.prefix }),
      gateway: ipText(range.gateway),
    })),
    routes: (conf.ipam?.routes ?? []).map(routeOf),
    dns,
  };
}

/** A route of the config in canonical text; keys that were not given are absent. */
function routeOf({ dst, gw, ...rest }: RouteConf): Route {
  const canonical = { dst: cidrText(parseCidr(dst)!), ...(gw ? { gw: ipText(parseIp(gw)!) } : {}) };
  return { ...canonical, ...(rest as Omit<Route, "dst" | "gw">) };
}
