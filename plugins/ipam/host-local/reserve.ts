import { type Ip, ipText, parseIp } from "@tscni/addr";
import { CniError, ErrorCode, messageOf } from "@tscni/types";
import { allocate, type Picked, type Reservations } from "./allocate.ts";
import { type Cooling, readCooling } from "./cooling.ts";
import type { Owner } from "./ledger.ts";
import type { RangeSet } from "./ranges.ts";
import { releaseEach } from "./release.ts";
import { ioFailure, type Store } from "./store.ts";
import { poolsOf, poolText } from "./usage.ts";

export interface Request {
  readonly sets: readonly RangeSet[];
  readonly requested: readonly Ip[];
  readonly owner: Owner;
  /** Seconds. */
  readonly cooldown: number;
}

/** Reserves an address of every set, or none. Throws as `allocate` does, CniError 5 when files fail. */
export function reserve(store: Store, request: Request): Picked[] {
  const cooling = readCooling(store.folder, request.cooldown);
  // A second round comes only when a file was made behind the back of the lock; it reads all files anew.
  for (let round = 0; round < 8; round++) {
    const picks = pick(store, request, cooling);
    const done: string[] = [];
    try {
      if (picks.every(({ ip }) => store.reserve(ipText(ip), request.owner) && done.push(ipText(ip)))) {
        for (const { set, ip } of picks) store.setLastReserved(set, ipText(ip));
        return picks;
      }
    } catch (error) {
      throw withLeftovers(ioFailure(store.folder.path, error), releaseEach(store, done));
    }
    const failures = releaseEach(store, done);
    if (failures.length > 0) throw failures[0];
    store.forget();
  }
  throw new CniError(
    ErrorCode.TryAgainLater,
    `reservations in ${store.folder.path} change without taking its lock`,
  );
}

/** Picks addresses; the error of a pool that has none to give says how full the pools are, and whose they are. */
function pick(store: Store, { sets, requested, owner }: Request, cooling: Cooling): Picked[] {
  try {
    return allocate(sets, requested, reservationsOf(store, owner, cooling), owner.containerId);
  } catch (error) {
    if (!(error instanceof CniError) || error.code !== ErrorCode.TryAgainLater) throw error;
    const full = poolsOf(sets, store.ledger, cooling).filter((pool) => pool.free === 0n);
    const details = [error.details, ...full.map((pool) => poolText(pool, store.folder.path))];
    throw new CniError(error.code, error.msg, { details: details.filter(Boolean).join("; "), cause: error });
  }
}

function reservationsOf(store: Store, owner: Owner, cooling: Cooling): Reservations {
  // With an interface name or without: the reference counts both.
  const own = [...store.ipsOf(owner), ...store.ledger.ipsOf({ ...owner, ifName: "" })];
  return {
    isTaken: (ip) => store.ledger.has(ipText(ip)),
    isCooling: (ip) => cooling.size > 0 && cooling.has(ipText(ip)),
    lastReserved: (set) => store.lastReserved(set),
    own: own.map(parseIp).filter((ip) => ip !== undefined),
  };
}

function withLeftovers(error: unknown, failures: readonly unknown[]): unknown {
  if (failures.length === 0) return error;
  const details = `could not be taken back: ${failures.map(messageOf).join("; ")}`;
  const code = error instanceof CniError ? error.code : ErrorCode.Internal;
  return new CniError(code, messageOf(error), { details, cause: error });
}
