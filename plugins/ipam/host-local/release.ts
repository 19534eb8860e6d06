import { messageOf } from "@tscni/types";
import { startCooling } from "./cooling.ts";
import { addressesIn } from "./folder.ts";
import type { Owner } from "./ledger.ts";
import { ioFailure, type Store } from "./store.ts";

type Warn = (message: string) => void;

/** Takes addresses back, going on past those that cannot be. Returns what went wrong. */
export function releaseEach(store: Store, ips: readonly string[]): unknown[] {
  const failures: unknown[] = [];
  for (const ip of ips) {
    try {
      store.release(ip);
    } catch (error) {
      failures.push(ioFailure(store.folder.path, error));
    }
  }
  return failures;
}

/** Takes addresses back that were in use: they cool from now on. `cooldown` in seconds. */
export function releaseUsed(store: Store, ips: readonly string[], cooldown: number, warn: Warn): unknown[] {
  try {
    startCooling(store.folder, ips, cooldown);
  } catch (error) {
    // A release matters more than its cooling: a full disk must not keep addresses in use.
    warn(`released addresses will not cool down: ${messageOf(error)}`);
  }
  return releaseEach(store, ips);
}

/** Releases every reservation that is not valid, and blank files, and says which. Returns what went wrong. */
export function releaseInvalid(
  store: Store,
  isValid: (owner: Owner) => boolean,
  cooldown: number,
  warn: Warn,
): unknown[] {
  store.forget();
  const owners = new Map(store.ledger.entries().map((entry) => [entry.ip, entry]));
  const stale = new Map<string, string>();
  for (const ip of addressesIn(store.folder.names()).sort()) {
    const owner = owners.get(ip);
    if (owner && isValid(owner)) continue;
    stale.set(ip, owner ? `${owner.containerId} ${owner.ifName}`.trim() : "nobody");
  }
  const failures = releaseUsed(store, [...stale.keys()], cooldown, warn);
  for (const [ip, owner] of stale) if (store.ownerOf(ip) === undefined) warn(`released ${ip} of ${owner}`);
  return failures;
}
