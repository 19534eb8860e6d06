import { CniError } from "@tscni/types";
import { expect, test } from "vitest";
import {
  cidr,
  confProblems,
  confSchema,
  decodeConf,
  integer,
  ipAddress,
  jsonSchemaOf,
  unknownKeys,
  v,
} from "./index.ts";

const schema = confSchema({
  bridge: v.optional(v.string(), "cni0"),
  mtu: v.optional(integer(0), 0),
  ranges: v.optional(v.array(v.array(v.object({ subnet: cidr(), gateway: v.optional(ipAddress()) })))),
  ipam: v.optional(v.object({ type: v.string(), dataDir: v.optional(v.string()) })),
});

const failure = (json: unknown): CniError => {
  try {
    decodeConf(schema, json);
  } catch (error) {
    if (error instanceof CniError) return error;
    throw error;
  }
  throw new Error("no failure");
};

test("fills in defaults and keeps what is given", () => {
  expect(decodeConf(schema, { name: "n", mtu: 9000 })).toMatchObject({
    name: "n",
    bridge: "cni0",
    mtu: 9000,
  });
});

test("matches keys in any case, the last spelling winning, and takes null for absent", () => {
  const conf = decodeConf(schema, {
    Bridge: "a",
    BRIDGE: "b",
    MTU: null,
    Ranges: [[{ Subnet: "10.0.0.0/8" }]],
  });
  expect(conf).toMatchObject({ bridge: "b", mtu: 0, ranges: [[{ subnet: "10.0.0.0/8" }]] });
});

test("names path, value and expectation: code 6 for a wrong type, 7 for a wrong value", () => {
  expect(failure({ mtu: "big" })).toMatchObject({ code: 6, msg: 'mtu: "big" is not a number' });
  expect(failure({ mtu: 1.5 })).toMatchObject({ code: 7, msg: "mtu: 1.5 is not a whole number" });
  expect(failure(JSON.parse('{ "mtu": 1e400 }'))).toMatchObject({
    msg: "mtu: Infinity is not a whole number",
  });
  expect(failure({ ranges: [[{ subnet: "10.1.0.300/24" }]] })).toMatchObject({
    code: 7,
    msg: 'ranges[0][0].subnet: "10.1.0.300/24" is not a CIDR address',
  });
  expect(failure({ ranges: [[{}]] })).toMatchObject({ code: 6, msg: "ranges[0][0].subnet: missing" });
  expect(failure({ ipam: [] })).toMatchObject({ code: 6, msg: "ipam: [] is not an object" });
});

test("lenient decoding drops and reports what is wrong, except what is needed", () => {
  const seen: string[] = [];
  const lenient = (p: { path: string }) => seen.push(p.path);
  const conf = decodeConf(schema, { mtu: "x", ranges: [[{ subnet: 3 }]], bridge: "b" }, { lenient });
  expect(conf).toMatchObject({ bridge: "b", mtu: 0 });
  expect(conf.ranges).toBeUndefined();
  expect(seen).toEqual(["mtu", "ranges[0][0].subnet"]);
  const needs = { lenient, needs: ["ipam.dataDir"] };
  expect(() => decodeConf(schema, { ipam: { type: "h", dataDir: 7 } }, needs)).toThrow(
    "ipam.dataDir: 7 is not a string",
  );
  expect(decodeConf(schema, { ipam: { dataDir: "/x" } }, needs).ipam).toBeUndefined();
});

test("lenient decoding drops a list with several wrong items once, and nothing around it", () => {
  const seen: string[] = [];
  const conf = decodeConf(
    schema,
    { ipam: { type: "host-local", dataDir: 3 }, ranges: [[{ subnet: 3 }, { subnet: 4 }], [{}]] },
    { lenient: (p) => seen.push(p.path) },
  );
  expect(conf).toMatchObject({ ipam: { type: "host-local" } });
  expect(conf.ranges).toBeUndefined();
  expect(seen).toEqual(["ipam.dataDir", "ranges[0][0].subnet", "ranges[0][1].subnet", "ranges[1][0].subnet"]);
  const needs = { lenient: () => {}, needs: ["ranges"] };
  expect(() => decodeConf(schema, { ranges: [[{ subnet: 3 }]] }, needs)).toThrow("ranges[0][0].subnet: 3");
});

test("lenient decoding passes over keys that are right but don't go together", () => {
  const pair = v.check(
    confSchema({ a: v.optional(v.boolean(), false), b: v.optional(v.boolean(), false) }),
    (conf) => !(conf.a && conf.b),
    "cannot set a and b at the same time",
  );
  const seen: string[] = [];
  const lenient = { lenient: (p: { path: string; message: string }) => seen.push(`${p.path}:${p.message}`) };
  expect(decodeConf(pair, { a: true, b: true, dns: 3 }, lenient)).toMatchObject({ a: true, b: true });
  expect(seen).toEqual(["dns:3 is not an object", ":cannot set a and b at the same time"]);
  expect(() => decodeConf(pair, { a: true, b: true })).toThrow("cannot set a and b at the same time");
  expect(() => decodeConf(pair, [], lenient)).toThrow("is not an object");
});

test("shows a value that is nested too deep for text", () => {
  const deep = JSON.parse("[".repeat(1e6) + "]".repeat(1e6));
  expect(failure({ mtu: deep })).toMatchObject({ code: 6, msg: "mtu: [...] is not a number" });
  expect(failure({ ipam: deep })).toMatchObject({ code: 6, msg: "ipam: [...] is not an object" });
});

test("finds keys that nobody declared and guesses what was meant", () => {
  expect(
    unknownKeys(schema, { brdige: "x", ranges: [[{ subnet: "10.0.0.0/8", gatway: "1" }]], zzz: 1 }),
  ).toEqual([
    { path: "brdige", suggestion: "bridge" },
    { path: "ranges[0][0].gatway", suggestion: "gateway" },
    { path: "zzz" },
  ]);
});

test("lists every problem", () => {
  expect(confProblems(schema, { mtu: "x", bridge: 1 }).map((p) => p.path)).toEqual(["bridge", "mtu"]);
});

test("a __proto__ key is data like any other", () => {
  const conf = decodeConf(
    schema,
    JSON.parse('{"__proto__":{"bridge":"evil"},"ipam":{"type":"h","__proto__":{"dataDir":"/e"}}}'),
  );
  expect(conf.bridge).toBe("cni0");
  expect(conf.ipam?.dataDir).toBeUndefined();
});

test("comes out as JSON Schema", () => {
  const { properties, type } = jsonSchemaOf(schema) as { properties: Record<string, object>; type: string };
  expect(type).toBe("object");
  expect(properties.mtu).toEqual({ type: "integer", minimum: 0, default: 0 });
  expect(properties.ranges).toMatchObject({ items: { items: { required: ["subnet"] } } });
});

test("a union takes the first alternative that fits, and reports the first one's problem", () => {
  const either = confSchema({ x: v.optional(v.union([v.array(v.string()), v.string()])) });
  expect(decodeConf(either, { x: "a" }).x).toBe("a");
  expect(decodeConf(either, { x: ["a"] }).x).toEqual(["a"]);
  expect(() => decodeConf(either, { x: 1 })).toThrow("x: 1 is not a list");
});

test("a number beyond what counts exactly is called too large, not too small", () => {
  const rate = confSchema({ rate: v.optional(integer(0)) });
  expect(() => decodeConf(rate, { rate: 1e30 })).toThrow("rate: 1e+30 is too large a number");
  expect(() => decodeConf(rate, { rate: -1 })).toThrow("rate: -1 is below 0");
});
