import { type Ip, ipEquals, ipText } from "@tscni/addr";
import { CniError, ErrorCode } from "@tscni/types";
import { type Range, type RangeSet, rangeContains, rangeFor, rangeSetText } from "./ranges.ts";

/** What the allocator must know of the addresses that are in use: files in the plugin, a Set in its tests. */
export interface Reservations {
  isTaken(ip: Ip): boolean;
  /** Released so recently that `cooldown` keeps it out of use. */
  isCooling(ip: Ip): boolean;
  /** The address that the set handed out last. */
  lastReserved(set: number): Ip | undefined;
  /** What this container and interface have already. */
  readonly own: readonly Ip[];
}

/** An address picked from a set, not yet reserved. */
export interface Picked {
  readonly set: number;
  readonly ip: Ip;
  readonly range: Range;
}

/**
 * Picks an address from every set: the first of `requested` that lies in it, otherwise the next free one after
 * the last reserved. Changes nothing. Throws CniError in the reference's words: 11 when there is none at the
 * moment, 7 for a request that can never be met.
 */
export function allocate(
  sets: readonly RangeSet[],
  requested: readonly Ip[],
  reservations: Reservations,
  containerId: string,
): Picked[] {
  const rest = [...requested];
  const picks = sets.map((ranges, set) => {
    const i = rest.findIndex((ip) => rangeFor(ranges, ip));
    const wanted = i < 0 ? undefined : rest.splice(i, 1)[0];
    const fail = (code: number, why: string, details = "") =>
      new CniError(code, `failed to allocate for range ${set}: ${why}`, { details });
    return wanted
      ? pickRequested(ranges, set, wanted, reservations, fail)
      : pickNext(ranges, set, reservations, containerId, fail);
  });
  if (rest.length > 0)
    throw new CniError(
      ErrorCode.InvalidNetworkConfig,
      `failed to allocate all requested IPs: ${rest.map(ipText).join(" ")}`,
    );
  return picks;
}

type Fail = (code: number, why: string, details?: string) => CniError;

function pickRequested(ranges: RangeSet, set: number, ip: Ip, known: Reservations, fail: Fail): Picked {
  const range = rangeFor(ranges, ip)!;
  if (ipEquals(ip, range.gateway))
    throw fail(ErrorCode.InvalidNetworkConfig, `requested ip ${ipText(ip)} is subnet's gateway`);
  const cooling = known.isCooling(ip);
  if (cooling || known.isTaken(ip))
    throw fail(
      ErrorCode.TryAgainLater,
      `requested IP address ${ipText(ip)} is not available in range set ${rangeSetText(ranges)}`,
      cooling ? "it was released a moment ago and cools down" : "",
    );
  return { set, ip, range };
}

function pickNext(
  ranges: RangeSet,
  set: number,
  known: Reservations,
  containerId: string,
  fail: Fail,
): Picked {
  const own = known.own.find((ip) => rangeFor(ranges, ip));
  if (own)
    throw fail(
      ErrorCode.Internal,
      `${ipText(own)} has been allocated to ${containerId}, duplicate allocation is not allowed`,
    );
  let cooling = 0;
  for (const { range, from, to } of turnOf(ranges, known.lastReserved(set))) {
    // Every step but the last meets an address in use, so this is bounded by their number.
    for (let value = from.value; value <= to.value; value++) {
      const ip: Ip = { family: from.family, value };
      if (ipEquals(ip, range.gateway) || known.isTaken(ip)) continue;
      if (!known.isCooling(ip)) return { set, ip, range };
      cooling++;
    }
  }
  throw fail(
    ErrorCode.TryAgainLater,
    `no IP addresses available in range set: ${rangeSetText(ranges)}`,
    cooling > 0 ? `${cooling} released addresses still cool down (ipam.cooldown)` : "",
  );
}

interface Stretch {
  readonly range: Range;
  readonly from: Ip;
  readonly to: Ip;
}

/** One turn through a set: from behind the last reserved address through all ranges, itself at the end. */
function turnOf(ranges: RangeSet, last: Ip | undefined): Stretch[] {
  const start = last === undefined ? -1 : ranges.findIndex((range) => rangeContains(range, last));
  if (last === undefined || start < 0) return ranges.map(wholeOf);
  const range = ranges[start]!;
  return [
    { range, from: { ...last, value: last.value + 1n }, to: range.last }, // none when it was the range's last
    ...ranges.slice(start + 1).map(wholeOf),
    ...ranges.slice(0, start).map(wholeOf),
    { range, from: range.first, to: last },
  ];
}

const wholeOf = (range: Range): Stretch => ({ range, from: range.first, to: range.last });
