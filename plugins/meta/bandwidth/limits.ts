import { type TokenBucket, ticksOf } from "@tscni/netlink";
import { CniError, ErrorCode } from "@tscni/types";
import type { BandwidthConf } from "./conf.ts";

/** The buckets that a config asks for: what the container receives, and what it sends. */
export interface Limits {
  ingress: TokenBucket | undefined;
  egress: TokenBucket | undefined;
}

/**
 * The limits of a config; any rate or burst at its top level puts those of the runtime aside. Throws CniError 7 for a
 * rate without burst and the reverse.
 */
export function limitsOf(conf: BandwidthConf): Limits {
  const isSet = (conf.ingressRate ?? conf.ingressBurst ?? conf.egressRate ?? conf.egressBurst) !== undefined;
  const rates = (isSet ? conf : conf.runtimeConfig?.bandwidth) ?? {};
  const { ingressRate = 0, ingressBurst = 0, egressRate = 0, egressBurst = 0 } = rates;
  return {
    ingress: bucketOf("ingress", ingressRate, ingressBurst, conf.latency),
    egress: bucketOf("egress", egressRate, egressBurst, conf.latency),
  };
}

/** The reference's figures, to the byte: its CHECK compares them. Rate in bit/s, burst in bits, latency in ms. */
function bucketOf(way: string, rate: number, burst: number, latency: number): TokenBucket | undefined {
  if (rate === 0 && burst === 0) return undefined;
  if (burst === 0) throw wrong("if rate is set, burst must also be set", `${way}Rate is ${rate}`);
  if (rate === 0) throw wrong("if burst is set, rate must also be set", `${way}Burst is ${burst}`);
  if (burst / 8 >= 0xffffffff) throw wrong("burst cannot be more than 4GB", `${way}Burst is ${burst} bits`);
  if (rate < 8) throw wrong(`${way}Rate: ${rate} is below 8 bit/s`);
  const [bytes, burstBytes] = [Math.floor(rate / 8), Math.floor(burst / 8)];
  return {
    rate: bytes,
    buffer: ticksOf(Math.trunc((burstBytes * 1e6) / bytes)),
    limit: Math.min(0xffffffff, Math.trunc((bytes * latency) / 1000) + burstBytes),
  };
}

const wrong = (msg: string, details = ""): CniError =>
  new CniError(ErrorCode.InvalidNetworkConfig, msg, { details });

/** Bytes that a full bucket lets go at once: larger packets never get through. */
export const burstOf = ({ rate, buffer }: TokenBucket): number => Math.floor((rate * buffer * 64) / 1e9);
