import { NetlinkError } from "./error.ts";
import { NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE } from "./flags.ts";
import type { MessageOf, Requester } from "./message.ts";
import type { Netlink } from "./netlink.ts";
import { filterFormat, qdiscFormat } from "./tables/traffic.ts";

// linux/pkt_sched.h
const TC_H_ROOT = 0xffffffff;
const TC_H_INGRESS = 0xfffffff1;
/** `1:` */
const rootHandle = 0x10000;
/** `ffff:`, what filters of incoming packets hang on. */
const ingressHandle = 0xffff0000;

// linux/pkt_cls.h, linux/tc_act/tc_mirred.h
const TC_U32_TERMINAL = 1;
const TC_ACT_STOLEN = 4;
const TCA_EGRESS_REDIR = 1;
const ETH_P_ALL = 3;

/** The kernel counts a bucket's time in ticks of 64 ns (PSCHED_SHIFT, net/pkt_sched.h) and keeps it in 32 bits of ns. */
const tickNs = 64;
export const maxBufferTicks = Math.floor(0xffffffff / tickNs);

/** A token bucket filter: what a link sends, packets that wait included. */
export interface TokenBucket {
  /** Bytes a second. */
  rate: number;
  /** How long the tokens of a full bucket last at that rate, in ticks of 64 ns; at most {@link maxBufferTicks}. */
  buffer: number;
  /** Bytes that may wait. */
  limit: number;
}

/** Microseconds as ticks of a bucket. */
export const ticksOf = (us: number): number => Math.min(maxBufferTicks, Math.trunc((us * 1000) / tickNs));

/** A queueing discipline of a link. */
export interface Qdisc {
  /** The link's index. */
  index: number;
  /** "tbf", "ingress", "noqueue"; */
  kind: string;
  isRoot: boolean;
  tokenBucket?: TokenBucket | undefined;
}

/** Gives a link a token bucket as its root, or the one that it has other figures. Throws NetlinkError. */
export function setTokenBucket(requests: Requester, index: number, bucket: TokenBucket): void {
  const { rate, buffer, limit } = bucket;
  const isLarge = rate > 0xfffffffe;
  const parms = {
    rate: rateSpec(isLarge ? 0xffffffff : rate),
    peakRate: rateSpec(0),
    limit,
    buffer,
    mtu: 0,
  };
  requests.request(
    qdiscFormat,
    "NEW",
    NLM_F_CREATE | NLM_F_REPLACE,
    { index, handle: rootHandle, parent: TC_H_ROOT },
    { kind: "tbf", options: { tbf: { parms, ...(isLarge ? { rate64: BigInt(rate) } : {}) } } },
    `tbf on index ${index}`,
  );
}

const rateSpec = (rate: number) => ({ cellLog: 0, linkLayer: 0, overhead: 0, cellAlign: 0, mpu: 0, rate });

/**
 * Whether the kernel has token buckets, found out by asking for one without figures, which it refuses. It loads the
 * module for that, as it would for a bucket.
 */
export function hasTokenBuckets(requests: Requester): boolean {
  const loopback = 1;
  try {
    const header = { index: loopback, handle: rootHandle, parent: TC_H_ROOT };
    requests.request(qdiscFormat, "NEW", NLM_F_CREATE | NLM_F_EXCL, header, { kind: "tbf" }, "tbf");
  } catch (error) {
    return !(error instanceof NetlinkError && error.code === "ENOENT");
  }
  return true;
}

/** Lets a link's incoming packets be filtered. Throws NetlinkError EEXIST when they can be already. */
export function addIngress(requests: Requester, index: number): void {
  requests.request(
    qdiscFormat,
    "NEW",
    NLM_F_CREATE | NLM_F_EXCL,
    { index, handle: ingressHandle, parent: TC_H_INGRESS },
    { kind: "ingress" },
    `ingress of index ${index}`,
  );
}

/** Takes a link's root qdisc or its ingress away; there being none is fine, and so is there being no link. */
export function deleteQdisc(requests: Requester, index: number, which: "root" | "ingress"): void {
  const parent = which === "root" ? TC_H_ROOT : TC_H_INGRESS;
  try {
    requests.request(qdiscFormat, "DEL", 0, { index, parent }, {}, `${which} of index ${index}`);
  } catch (error) {
    // ENOENT: the default one, which has no handle. EINVAL: no ingress.
    if (!(error instanceof NetlinkError) || !["ENOENT", "EINVAL", "ENODEV"].includes(error.code)) throw error;
  }
}

/** All links' queueing disciplines, or one link's. */
export function listQdiscs(netlink: Netlink, index?: number): Qdisc[] {
  return netlink
    .dump(qdiscFormat, { index: index ?? 0 }, {}, "qdiscs")
    .map(qdiscOf)
    .filter((qdisc) => (index ?? qdisc.index) === qdisc.index);
}

function qdiscOf({ header, attributes }: MessageOf<typeof qdiscFormat>): Qdisc {
  const { parms, rate64 } = attributes.options?.tbf ?? {};
  return {
    index: header.index,
    kind: attributes.kind ?? "",
    isRoot: header.parent === TC_H_ROOT,
    tokenBucket: parms && {
      rate: rate64 === undefined ? parms.rate.rate : Number(rate64),
      buffer: parms.buffer,
      limit: parms.limit,
    },
  };
}

const redirectHeader = (index: number) => ({
  index,
  parent: ingressHandle,
  // The protocol in network order.
  info: ((1 << 16) | (ETH_P_ALL << 8)) >>> 0,
});

/** Sends all that comes in by a link, which has an ingress, out by another one instead. Throws NetlinkError. */
export function addRedirect(requests: Requester, index: number, target: number): void {
  const parms = {
    index: 0,
    capabilities: 0,
    action: TC_ACT_STOLEN,
    references: 0,
    bindings: 0,
    direction: TCA_EGRESS_REDIR,
    ifIndex: target,
  };
  requests.request(
    filterFormat,
    "NEW",
    NLM_F_CREATE | NLM_F_EXCL,
    redirectHeader(index),
    {
      kind: "u32",
      options: {
        u32: {
          classId: rootHandle | 1,
          selector: { ...everyPacket },
          actions: [{ kind: "mirred", options: { mirred: { parms } } }],
        },
      },
    },
    `redirect of index ${index} to index ${target}`,
  );
}

/** One key, of no bits. */
const everyPacket = {
  flags: TC_U32_TERMINAL,
  offsetShift: 0,
  keys: 1,
  offsetMask: 0,
  offset: 0,
  offsetOffset: 0,
  hashOffset: 0,
  hashMask: 0,
  keyMask: 0,
  keyValue: 0,
  keyOffset: 0,
  keyOffsetMask: 0,
};

/** Takes away what {@link addRedirect} made on a link; there being nothing is fine. */
export function deleteRedirects(requests: Requester, index: number): void {
  try {
    requests.request(
      filterFormat,
      "DEL",
      0,
      redirectHeader(index),
      { kind: "u32" },
      `filter of index ${index}`,
    );
  } catch (error) {
    if (!(error instanceof NetlinkError) || !["ENOENT", "EINVAL", "ENODEV"].includes(error.code)) throw error;
  }
}

/** The indices of the links that filters of u32 send a link's incoming packets to, one for each action. */
export function listRedirects(netlink: Netlink, index: number): number[] {
  return netlink
    .dump(filterFormat, { index, parent: ingressHandle }, {}, `filters of index ${index}`)
    .flatMap(({ attributes }) => attributes.options?.u32?.actions ?? [])
    .map((action) => action.options?.mirred?.parms)
    .filter((parms) => parms?.direction === TCA_EGRESS_REDIR)
    .map((parms) => parms!.ifIndex);
}
