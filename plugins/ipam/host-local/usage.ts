import { ipText, parseIp } from "@tscni/addr";
import type { Ledger } from "./ledger.ts";
import { type RangeSet, rangeFor, rangeSetText, sizeOf } from "./ranges.ts";

/** How full one range set is. */
export interface Pool {
  readonly set: number;
  readonly ranges: RangeSet;
  readonly size: bigint;
  readonly free: bigint;
  readonly cooling: number;
  /** Addresses in use by container id, most first. */
  readonly users: readonly (readonly [containerId: string, count: number])[];
}

export function poolsOf(
  sets: readonly RangeSet[],
  ledger: Ledger,
  cooling: ReadonlyMap<string, number>,
): Pool[] {
  const entries = ledger.entries();
  return sets.map((ranges, set) => {
    const isInside = (text: string) => {
      const ip = parseIp(text);
      const range = ip && rangeFor(ranges, ip);
      return range !== undefined && ipText(range.gateway) !== text;
    };
    const users = new Map<string, number>();
    let used = 0;
    for (const { ip, containerId } of entries) {
      if (!isInside(ip)) continue;
      used++;
      users.set(containerId, (users.get(containerId) ?? 0) + 1);
    }
    const coolingHere = [...cooling.keys()].filter((ip) => isInside(ip) && !ledger.has(ip)).length;
    const size = sizeOf(ranges);
    return {
      set,
      ranges,
      size,
      free: size - BigInt(used + coolingHere),
      cooling: coolingHere,
      users: [...users].sort((a, b) => b[1] - a[1]),
    };
  });
}

/** The state of a pool for whoever has to find out why it is full: how many, whose, and where to look. */
export function poolText({ set, ranges, size, free, cooling, users }: Pool, dir: string): string {
  const used = users.reduce((sum, [, count]) => sum + count, 0);
  const top = users.slice(0, 5).map(([id, count]) => `${id} (${count})`);
  const rest = users.length > top.length ? ` and ${users.length - top.length} more` : "";
  const by = top.length > 0 ? ` by ${users.length} containers: ${top.join(", ")}${rest}` : "";
  return [
    `range set ${set} (${rangeSetText(ranges)}): ${free} of ${size} addresses free, ${used} in use${by}`,
    ...(cooling > 0 ? [`${cooling} cooling down`] : []),
    `whose each one is: grep -a . ${dir}/*`,
    "to release those of containers that are gone: cnitool gc",
  ].join("; ");
}
