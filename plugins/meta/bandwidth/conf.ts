import { confSchema, type Infer, integer, v } from "@tscni/conf";

/** Rates in bit/s, bursts in bits; "in" is what the container receives. */
const rates = () => ({
  ingressRate: v.optional(integer(0)),
  ingressBurst: v.optional(integer(0)),
  egressRate: v.optional(integer(0)),
  egressBurst: v.optional(integer(0)),
});

/** What the plugin's README lists; unknown keys are ignored. */
export const BandwidthConf = confSchema({
  ...rates(),
  latency: v.optional(
    v.check(v.number(), (ms) => ms > 0 && ms <= 60_000, "is not above 0 and at most 60000", {
      exclusiveMinimum: 0,
      maximum: 60_000,
    }),
    25,
  ),
  runtimeConfig: v.optional(v.looseObject({ bandwidth: v.optional(v.object(rates())) })),
});

export type BandwidthConf = Infer<typeof BandwidthConf>;
