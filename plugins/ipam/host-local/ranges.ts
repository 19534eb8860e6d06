import {
  bitsOf,
  type Cidr,
  cidrContains,
  cidrText,
  type Ip,
  ipEquals,
  ipPlus,
  ipText,
  lastIpOf,
  networkOf,
  parseCidr,
  parseIp,
} from "@tscni/addr";
import { atLeast, CniError, ErrorCode } from "@tscni/types";
import type { HostLocalConf, RangeConf } from "./conf.ts";

/** Addresses from `first` to `last`, both included, less the gateway. */
export interface Range {
  readonly subnet: Cidr;
  readonly first: Ip;
  readonly last: Ip;
  readonly gateway: Ip;
}

/** A pool: one address of a result comes from it. Its ranges are of one family and don't overlap. */
export type RangeSet = readonly Range[];

export const rangeText = (range: Range): string => `${ipText(range.first)}-${ipText(range.last)}`;
export const rangeSetText = (set: RangeSet): string => set.map(rangeText).join(",");

export const rangeContains = (range: Range, ip: Ip): boolean =>
  ip.family === range.first.family && ip.value >= range.first.value && ip.value <= range.last.value;

/** The range of the set that an address lies in. */
export const rangeFor = (set: RangeSet, ip: Ip): Range | undefined => set.find((r) => rangeContains(r, ip));

/** How many addresses a set can hand out. */
export function sizeOf(set: RangeSet): bigint {
  return set.reduce(
    (sum, r) => sum + r.last.value - r.first.value + (rangeContains(r, r.gateway) ? 0n : 1n),
    0n,
  );
}

/**
 * Every range set of a config, checked, with defaults filled in: those of the runtime first, then the single
 * range of old configs, then `ranges`. Empty when there are none. Throws CniError 7 in the reference's words.
 */
export function rangeSetsOf(conf: HostLocalConf, cniVersion: string): RangeSet[] {
  const { ipam, runtimeConfig } = conf;
  const sets: (readonly RangeConf[])[] = [];
  for (const item of runtimeConfig?.ipRanges ?? []) sets.push(Array.isArray(item) ? item : [item]);
  if (ipam?.subnet !== undefined) sets.push([{ ...ipam, subnet: ipam.subnet }]);
  sets.push(...(ipam?.ranges ?? []));
  const checked = sets.map((set, i) => rangeSetOf(set, (why) => invalid(`invalid range set ${i}: ${why}`)));
  verifyFamilies(checked, cniVersion);
  for (const [i, a] of checked.entries())
    for (let j = i + 1; j < checked.length; j++)
      if (a.some((r) => checked[j]!.some((s) => overlap(r, s))))
        throw invalid(`range set ${i} overlaps with ${j}`);
  return checked;
}

const invalid = (message: string): CniError => new CniError(ErrorCode.InvalidNetworkConfig, message);

/** Results before 0.3.0 have room for one address a family. */
function verifyFamilies(sets: readonly RangeSet[], cniVersion: string): void {
  const four = sets.filter((set) => set[0]!.first.family === 4).length;
  if ((four > 1 || sets.length - four > 1) && !atLeast(cniVersion || "0.1.0", "0.3.0"))
    throw invalid(`CNI version ${cniVersion} does not support more than 1 address per family`);
}

type Fail = (why: string) => CniError;

function rangeSetOf(set: readonly RangeConf[], fail: Fail): RangeSet {
  if (set.length === 0) throw fail("empty range set");
  const ranges = set.map((range) => rangeOf(range, fail));
  if (ranges.some((r) => r.first.family !== ranges[0]!.first.family)) throw fail("mixed address families");
  for (const [i, a] of ranges.entries())
    for (const b of ranges.slice(i + 1))
      if (overlap(a, b)) throw fail(`subnets ${rangeText(a)} and ${rangeText(b)} overlap`);
  return ranges;
}

const overlap = (a: Range, b: Range): boolean =>
  a.first.family === b.first.family && a.first.value <= b.last.value && b.first.value <= a.last.value;

function rangeOf(conf: RangeConf, fail: Fail): Range {
  const subnet = parseCidr(conf.subnet)!;
  const network = networkOf(subnet);
  if (subnet.prefix > bitsOf(subnet.ip.family) - 2)
    throw fail(`Network ${cidrText(subnet)} too small to allocate from`);
  if (!ipEquals(subnet.ip, network.ip))
    throw fail(
      `Network has host bits set. For a subnet mask of length ${subnet.prefix} the network address is ${ipText(network.ip)}`,
    );
  const first = ipPlus(subnet.ip, 1n);
  const start = optionalIp(conf.rangeStart);
  const end = optionalIp(conf.rangeEnd);
  if (start && (!cidrContains(subnet, start) || (end && start.value > end.value)))
    throw fail(`RangeStart ${ipText(start)} not in network ${cidrText(subnet)}`);
  if (end && (!cidrContains(subnet, end) || end.value < (start ?? first).value))
    throw fail(`RangeEnd ${ipText(end)} not in network ${cidrText(subnet)}`);
  return {
    subnet,
    first: start ?? first,
    last: end ?? lastAssignable(subnet),
    gateway: optionalIp(conf.gateway) ?? first,
  };
}

const optionalIp = (text: string | undefined): Ip | undefined => (text ? parseIp(text) : undefined);

const lastAssignable = (subnet: Cidr): Ip =>
  subnet.ip.family === 4 ? ipPlus(lastIpOf(subnet), -1n) : lastIpOf(subnet);
