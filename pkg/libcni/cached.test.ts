import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeCached, type Entry, encodeCached } from "./cached.ts";
import { parseJson, sortKeys } from "./json.ts";
import type { JsonObject } from "./model.ts";

const text = fc.string({ minLength: 1, unit: "grapheme" });
const object = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })) as fc.Arbitrary<JsonObject>;
const entry: fc.Arbitrary<Entry> = fc.record(
  {
    network: text,
    containerId: text,
    ifName: text,
    netns: fc.string(),
    args: fc.array(fc.tuple(fc.string(), fc.string())),
    capabilityArgs: object,
    config: fc.string({ unit: "grapheme" }),
    result: object.filter((o) => Object.keys(o).length > 0),
    failed: fc.record({ verb: fc.constantFrom("ADD" as const, "DEL" as const), plugin: text, message: text }),
  },
  { requiredKeys: ["network", "containerId", "ifName", "netns", "args", "capabilityArgs", "config"] },
);
const decode = (json: string) => decodeCached(parseJson(json, ""), "f");

test("what is written is read", () => {
  fc.assert(
    fc.property(entry, (e) => {
      expect(decode(encodeCached(e))).toEqual(JSON.parse(JSON.stringify({ ...e, file: "f" })));
      // Only the order of keys may change on the way.
      expect(encodeCached(decode(encodeCached(e)))).toBe(encodeCached(e));
      const { capabilityArgs } = JSON.parse(encodeCached(e));
      expect(Object.keys(capabilityArgs ?? {})).toEqual(Object.keys(sortKeys(e.capabilityArgs) as object));
    }),
  );
});

test("a file cut off anywhere is refused", () => {
  fc.assert(
    fc.property(entry, fc.double({ min: 0, max: 0.999, noNaN: true }), (e, part) => {
      const json = encodeCached(e);
      expect(() => decode(json.slice(0, Math.floor(json.length * part)))).toThrow();
    }),
  );
});

test("any JSON is an attachment or an Error that says what is wrong", () => {
  const near = fc.record(
    Object.fromEntries(
      [
        "containerId",
        "networkName",
        "ifName",
        "netns",
        "config",
        "cniArgs",
        "capabilityArgs",
        "result",
        "failed",
      ].map((k) => [k, fc.oneof(fc.jsonValue(), text)]),
    ),
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), near), (json) => {
      try {
        const attachment = decode(JSON.stringify({ kind: "cniCacheV1", ...(json as object) }));
        expect(attachment.network).not.toBe("");
      } catch (error) {
        expect((error as Error).message).toMatch(/^its /);
      }
    }),
  );
});

test("the fields that Go leaves out when empty", () => {
  const bare = {
    network: "n",
    containerId: "c",
    ifName: "i",
    netns: "",
    args: [],
    capabilityArgs: {},
    config: "{}",
  };
  expect(encodeCached(bare)).toBe(
    '{"kind":"cniCacheV1","containerId":"c","config":"e30=","ifName":"i","networkName":"n"}',
  );
});
