import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { attributesOf, fieldsOf } from "./arbitrary.ts";
import * as codecs from "./codecs.ts";
import { Attributes, chosenBy, counted, each, headed, pad, Struct } from "./table.ts";
import { addressFormat } from "./tables/address.ts";
import { bridgeLinkFormat, linkFormat } from "./tables/link.ts";
import { namespaceFormat } from "./tables/namespace.ts";
import { neighbourFormat } from "./tables/neighbour.ts";
import { routeFormat } from "./tables/route.ts";
import { ruleFormat } from "./tables/rule.ts";
import { filterFormat, qdiscFormat } from "./tables/traffic.ts";
import { Wire } from "./wire.ts";

const formats = {
  linkFormat,
  bridgeLinkFormat,
  addressFormat,
  routeFormat,
  ruleFormat,
  neighbourFormat,
  namespaceFormat,
  qdiscFormat,
  filterFormat,
};

function encoded<T>(codec: codecs.Codec<T>, value: T): Uint8Array {
  const wire = new Wire(8);
  codec.put(wire, value, {});
  return wire.bytes.slice(0, wire.at);
}

function decoded<T>(codec: codecs.Codec<T>, data: Uint8Array): T {
  const wire = new Wire(data.length);
  wire.putBytes(data);
  return codec.get(wire, 0, data.length, {});
}

const hex = (data: Uint8Array) => Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join(" ");

describe("what is written is read back", () => {
  test.each(Object.entries(formats))("%s", (_, { header, attributes }) => {
    fc.assert(
      fc.property(fieldsOf(header), attributesOf(attributes), (fields, values) => {
        expect(decoded(header as codecs.Codec<unknown>, encoded(header as never, fields))).toEqual(fields);
        expect(decoded(attributes as codecs.Codec<unknown>, encoded(attributes as never, values))).toEqual(
          values,
        );
      }),
      { numRuns: 300 },
    );
  });

  test("the codecs that no table uses", () => {
    const table = new Attributes(() => ({
      u64: [1, codecs.u64],
      flag: [2, codecs.flag],
      bytes: [3, codecs.bytes],
    }));
    fc.assert(
      fc.property(attributesOf(table), (values) => {
        expect(decoded(table, encoded(table, values))).toEqual(values);
      }),
    );
  });
});

describe("what is read may be anything", () => {
  test.each(Object.entries(formats))("%s: random bytes are values or a RangeError", (_, { attributes }) => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (data) => {
        try {
          decoded(attributes as codecs.Codec<unknown>, data);
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("a message that is cut off is never read beyond its end", () => {
    const table = new Attributes(() => ({ name: [1, codecs.cString], mtu: [2, codecs.u32] }));
    const whole = encoded(table, { name: "eth0", mtu: 1500 });
    for (let length = 0; length < whole.length; length++) {
      const wire = new Wire(64);
      wire.putBytes(whole);
      try {
        const { mtu } = table.get(wire, 0, length);
        expect(mtu === undefined || length === whole.length).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
      }
    }
  });

  test("attributes that the table does not name are passed over", () => {
    const written = new Attributes(() => ({
      a: [1, codecs.u8],
      b: [200, codecs.cString],
      c: [3, codecs.u8],
    }));
    const read = new Attributes(() => ({ a: [1, codecs.u8], c: [3, codecs.u8] }));
    expect(decoded(read, encoded(written, { a: 1, b: "new", c: 3 }))).toEqual({ a: 1, c: 3 });
  });

  test("a longer payload and a shorter struct, as other kernels have them", () => {
    expect(decoded(codecs.u32, Uint8Array.of(1, 0, 0, 0, 9, 9))).toBe(1);
    const struct = new Struct({ a: codecs.u32, b: codecs.u32 });
    expect(decoded(struct, Uint8Array.of(1, 0, 0, 0))).toEqual({ a: 1 });
    expect(() => decoded(codecs.u32, Uint8Array.of(1, 0))).toThrow("2 bytes where 4 were expected");
  });
});

describe("the bytes", () => {
  test("of an attribute: length, type, payload, padding to four", () => {
    const table = new Attributes(() => ({ name: [3, codecs.cString], mtu: [4, codecs.u32] }));
    expect(hex(encoded(table, { name: "eth0", mtu: 1500 }))).toBe(
      "09 00 03 00 65 74 68 30 00 00 00 00 08 00 04 00 dc 05 00 00",
    );
  });

  test("of a nested one: marked as such", () => {
    const table = new Attributes(() => ({ inner: [2, new Attributes(() => ({ on: [1, codecs.bool] }))] }));
    expect(hex(encoded(table, { inner: { on: true } }))).toBe("0c 00 02 80 05 00 01 00 01 00 00 00");
  });

  test("of one repeated, of what is undefined, of nothing", () => {
    const table = new Attributes(() => ({ names: [53, each(codecs.cString)], mtu: [4, codecs.u32] }));
    expect(hex(encoded(table, { names: ["a", "b"], mtu: undefined }))).toBe(
      "06 00 35 00 61 00 00 00 06 00 35 00 62 00 00 00",
    );
    expect(encoded(table, {})).toEqual(new Uint8Array());
    expect(encoded(table, { names: [] })).toEqual(new Uint8Array());
  });

  test("of a struct: in order, with padding, zero where nothing is given", () => {
    const struct = new Struct({ a: codecs.u8, gap: pad(1), b: codecs.u16, c: codecs.i32 });
    const wire = new Wire(16);
    wire.bytes.fill(0xff);
    struct.putPart(wire, { c: -2 });
    expect(hex(wire.bytes.subarray(0, wire.at))).toBe("00 00 00 00 fe ff ff ff");
  });

  test("of a struct with attributes behind it, and of a list of such", () => {
    const header = new Struct({ index: codecs.u32 });
    const table = new Attributes(() => ({ on: [1, codecs.u8] }));
    expect(hex(encoded(headed(header, table), { index: 7, on: 1 }))).toBe(
      "07 00 00 00 05 00 01 00 01 00 00 00",
    );
    const short = new Struct({ index: codecs.u16 });
    expect(hex(encoded(counted(short, table), [{ index: 7, on: 1 }, { index: 8 }]))).toBe(
      "0c 00 07 00 05 00 01 00 01 00 00 00 04 00 08 00",
    );
  });

  test("of integers in network order, addresses, link-layer addresses", () => {
    expect(hex(encoded(codecs.u16be, 0x1234))).toBe("12 34");
    expect(hex(encoded(codecs.u16, 0x1234))).toBe("34 12");
    expect(hex(encoded(codecs.ip, { family: 4, value: 0x0a010203n }))).toBe("0a 01 02 03");
    expect(hex(encoded(codecs.ip, { family: 6, value: (0xfd00n << 112n) | 1n }))).toBe(
      "fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01",
    );
    expect(hex(encoded(codecs.mac, "02:Aa:ff:00:10:9f"))).toBe("02 aa ff 00 10 9f");
  });
});

describe("what can't be written", () => {
  test.each<[keyof typeof codecs, unknown[]]>([
    ["u8", [-1, 256, 1.5, Number.NaN]],
    ["u16", [-1, 65536]],
    ["u32", [-1, 2 ** 32, Number.POSITIVE_INFINITY]],
    ["i32", [2 ** 31, -(2 ** 31) - 1]],
    ["u64", [-1n, 1n << 64n]],
    ["cString", ["a\0b"]],
    ["mac", ["", "0", "02:", "02:0", "02-00", "02:00:", "0g:00", ":02", "02:000", "020:00", "02 00"]],
  ])("%s: %o", (name, values) => {
    for (const value of values) {
      const codec = codecs[name] as unknown as codecs.Codec<unknown>;
      expect(() => encoded(codec, value), String(value)).toThrow(RangeError);
    }
  });

  test("a payload longer than an attribute's length can say", () => {
    const table = new Attributes(() => ({ data: [1, codecs.bytes] }));
    expect(() => encoded(table, { data: new Uint8Array(65_535) })).toThrow("data: ");
    expect(encoded(table, { data: new Uint8Array(65_531) }).length).toBe(65_536);
  });
});

test("a payload that depends on its sibling", () => {
  const table = new Attributes(() => ({
    kind: [1, codecs.cString],
    data: [
      2,
      chosenBy("kind", { a: new Attributes(() => ({ x: [1, codecs.u8] })), b: new Attributes(() => ({})) }),
    ],
  }));
  const a = { kind: "a", data: { a: { x: 5 } } };
  expect(decoded(table, encoded(table, a))).toEqual(a);
  expect(hex(encoded(table, a))).toBe("06 00 01 00 61 00 00 00 0c 00 02 80 05 00 01 00 05 00 00 00");
  // A kind that is not declared: its data is left alone.
  const unknown = encoded(new Attributes(() => ({ kind: [1, codecs.cString], data: [2, codecs.bytes] })), {
    kind: "c",
    data: Uint8Array.of(1, 2, 3),
  });
  expect(decoded(table, unknown)).toEqual({ kind: "c", data: {} });
});
