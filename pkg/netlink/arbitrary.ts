import fc from "fast-check";
import * as codecs from "./codecs.ts";
import { Attributes, Struct } from "./table.ts";
import { kinds, slaveKinds } from "./tables/kinds.ts";
import { linkFormat } from "./tables/link.ts";
import { flatLink, ifinfomsg } from "./tables/link-flat.ts";
import { routeFormat } from "./tables/route.ts";
import { filterFormat, qdiscFormat, trafficKinds } from "./tables/traffic.ts";

// For tests: values that a table can hold, derived from the table.

type Codec = codecs.Codec<any>;

const integer = (bits: number) => fc.integer({ min: 0, max: 2 ** bits - 1 });
export const anyIp = fc.oneof(
  fc.bigInt({ min: 0n, max: (1n << 32n) - 1n }).map((value) => ({ family: 4 as const, value })),
  fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }).map((value) => ({ family: 6 as const, value })),
);
const anyMac = fc
  .uint8Array({ minLength: 1, maxLength: 20 })
  .map((data) => Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join(":"));

const byCodec = new Map<Codec, fc.Arbitrary<unknown>>([
  [codecs.u8, integer(8)],
  [codecs.u16, integer(16)],
  [codecs.u16be, integer(16)],
  [codecs.u32, integer(32)],
  [codecs.u32be, integer(32)],
  [codecs.i32, fc.integer()],
  [codecs.u64, fc.bigInt({ min: 0n, max: (1n << 64n) - 1n })],
  [codecs.bool, fc.boolean()],
  [codecs.flag, fc.constant(true)],
  [codecs.bytes, fc.uint8Array({ maxLength: 40 })],
  [codecs.cString, fc.string({ unit: "binary", maxLength: 40 }).filter((text) => !text.includes("\0"))],
  [codecs.mac, anyMac],
  [codecs.ip, anyIp],
]);

/** Values of any codec that stands by itself. */
export function valuesOf(codec: Codec): fc.Arbitrary<any> {
  const known = byCodec.get(codec);
  if (known !== undefined) return known;
  if (codec.each !== undefined) return fc.array(valuesOf(codec.each), { minLength: 1, maxLength: 4 });
  if (codec.listOf !== undefined) return fc.array(valuesOf(codec.listOf), { maxLength: 4 });
  if (codec instanceof Struct) return fieldsOf(codec);
  if (codec instanceof Attributes) return attributesOf(codec);
  throw new Error("no arbitrary for this codec");
}

export function fieldsOf(struct: Struct<any>): fc.Arbitrary<any> {
  const entries = Object.entries(struct.fields as Record<string, Codec>).filter(([, c]) => !("padding" in c));
  return fc.record(Object.fromEntries(entries.map(([name, codec]) => [name, valuesOf(codec)])));
}

/** Some of a table's attributes; the entries that need their siblings come from `special`. */
export function attributesOf(table: Attributes<any>): fc.Arbitrary<any> {
  const known = special(table);
  if (known !== undefined) return known;
  return recordOf(table, {});
}

function recordOf(table: Attributes<any>, given: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<any> {
  const entries = Object.entries(table.entries as Record<string, [number, Codec]>);
  const model = Object.fromEntries(
    entries.map(([name, [, codec]]) => [name, given[name] ?? valuesOf(codec)]),
  );
  return fc.record(model, { requiredKeys: [] });
}

function special(table: Attributes<any>): fc.Arbitrary<any> | undefined {
  if (table === linkFormat.attributes.entries.linkInfo[1]) return linkInfo();
  if (table === kinds.veth) return fc.record({ peer: headedBy(ifinfomsg, flatLink) });
  if (table === routeFormat.attributes) return recordOf(table, { nextHops: nextHops(), via: anyIp });
  if (table === qdiscFormat.attributes) return byKind(trafficKinds.qdisc, "kind", "options");
  if (table === filterFormat.attributes) return byKind(trafficKinds.filter, "kind", "options");
  if (table === trafficKinds.actionTable) return byKind(trafficKinds.action, "kind", "options");
  return undefined;
}

const headedBy = (header: Struct<any>, table: Attributes<any>) =>
  fc.tuple(fieldsOf(header), attributesOf(table)).map(([a, b]) => ({ ...a, ...b }));

const nextHops = () =>
  fc.array(
    fc.record(
      { flags: integer(8), hops: integer(8), index: fc.integer(), gateway: anyIp, via: anyIp },
      { requiredKeys: ["flags", "hops", "index"] },
    ),
    { minLength: 1, maxLength: 4 },
  );

/** A kind with its data, and a slave kind with its own. */
const linkInfo = () =>
  fc
    .tuple(byKind(kinds, "kind", "data"), byKind(slaveKinds, "slaveKind", "slaveData"))
    .map(([a, b]) => ({ ...a, ...b }));

/** One of the kinds under one key, under the other the data that it has. */
const byKind = (
  tables: Record<string, Attributes<any>>,
  kindKey: string,
  dataKey: string,
): fc.Arbitrary<any> =>
  fc.oneof(
    ...Object.entries(tables).map(([kind, table]) =>
      attributesOf(table).map((data) => ({ [kindKey]: kind, [dataKey]: { [kind]: data } })),
    ),
  );
