import { decodeConf } from "@tscni/conf";
import { describe, expect, test } from "vitest";
import { BandwidthConf } from "./conf.ts";
import { burstOf, limitsOf } from "./limits.ts";

const limits = (json: object) => limitsOf(decodeConf(BandwidthConf, json));

describe("the figures are the reference's", () => {
  test.each([
    // rate and burst in bits; rate and limit in bytes, buffer in ticks, as the Go plugin v1.9.1 sets them
    [10_000_000, 1_000_000, { rate: 1_250_000, buffer: 1_562_500, limit: 156_250 }],
    [8_000, 8_000, { rate: 1000, buffer: 15_625_000, limit: 1025 }],
    [123_456_789, 7_654_321, { rate: 15_432_098, buffer: 968_734, limit: 1_342_592 }],
    [100_000_000_000, 80_000_000, { rate: 12_500_000_000, buffer: 12_500, limit: 322_500_000 }],
  ])("%d bit/s, %d bits", (ingressRate, ingressBurst, bucket) => {
    expect(limits({ ingressRate, ingressBurst })).toEqual({ ingress: bucket, egress: undefined });
  });

  test("but within what the kernel keeps", () => {
    const { egress } = limits({ egressRate: 8000, egressBurst: 2 ** 33 });
    expect(egress).toEqual({ rate: 1000, buffer: 67_108_863, limit: 2 ** 30 + 25 });
    const { ingress } = limits({ ingressRate: 2 ** 50, ingressBurst: 2 ** 34 });
    expect(ingress?.limit).toBe(0xffffffff);
  });

  test("with another latency", () => {
    const rates = { ingressRate: 8_000_000, ingressBurst: 80_000 };
    const limit = (latency: number) => limits({ ...rates, latency }).ingress?.limit;
    expect([limit(25), limit(1), limit(0.5), limit(1000)]).toEqual([35_000, 11_000, 10_500, 1_010_000]);
  });
});

test("how much a full bucket lets go at once", () => {
  expect(burstOf(limits({ ingressRate: 10_000_000, ingressBurst: 1_000_000 }).ingress!)).toBe(125_000);
});

describe("whose rates count", () => {
  const runtimeConfig = { bandwidth: { IngressRate: 16_000, IngressBurst: 8_000 } };
  test("the runtime's, in any case, when the config has none", () => {
    expect(limits({ runtimeConfig, latency: 5 })).toMatchObject({ ingress: { rate: 2000, limit: 1010 } });
  });
  test.each([{ egressRate: 8000, egressBurst: 8000 }, { ingressRate: 0 }, { EgressBurst: 0 }])(
    "the config's as soon as it has one: %j",
    (own) => {
      expect(limits({ runtimeConfig, ...own }).ingress).toBeUndefined();
    },
  );
  test("none is no limit", () => {
    expect(limits({})).toEqual({ ingress: undefined, egress: undefined });
    expect(limits({ runtimeConfig: { bandwidth: {} } })).toEqual({ ingress: undefined, egress: undefined });
  });
});

describe("refused", () => {
  test.each([
    [{ ingressRate: 8 }, "if rate is set, burst must also be set; ingressRate is 8"],
    [{ egressBurst: 8 }, "if burst is set, rate must also be set; egressBurst is 8"],
    [
      { runtimeConfig: { bandwidth: { egressRate: 8 } } },
      "if rate is set, burst must also be set; egressRate is 8",
    ],
    [
      { ingressRate: 8, ingressBurst: 8 * 0xffffffff },
      "burst cannot be more than 4GB; ingressBurst is 34359738360 bits",
    ],
    [{ egressRate: 7, egressBurst: 8 }, "egressRate: 7 is below 8 bit/s"],
    [{ ingressRate: -1, ingressBurst: 1 }, "ingressRate: -1 is below 0"],
    [{ ingressRate: 1.5, ingressBurst: 1 }, "ingressRate: 1.5 is not a whole number"],
    [{ ingressRate: "1", ingressBurst: 1 }, 'ingressRate: "1" is not a number'],
    [{ latency: 0 }, "latency: 0 is not above 0 and at most 60000"],
    [{ latency: 60_001 }, "latency: 60001 is not above 0 and at most 60000"],
  ])("%j", (json, message) => {
    expect(() => limits(json)).toThrow(message);
  });
});
