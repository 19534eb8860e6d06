import type { Codec, Fixed, ValueOf } from "./codecs.ts";
import type { Wire } from "./wire.ts";

/** linux/netlink.h: the two highest bits of an attribute's type are flags. */
const NLA_F_NESTED = 0x8000;
const NLA_TYPE_MASK = 0x3fff;

/** The fields of a C struct in their order. A key whose codec is `pad(n)` takes room and has no value. */
export type Fields = { readonly [name: string]: Fixed<any> };

/** What a struct's fields hold. */
export type FieldValues<F extends Fields> = {
  -readonly [K in keyof F as F[K] extends Pad ? never : K]: ValueOf<F[K]>;
};

interface Pad extends Fixed<never> {
  readonly padding: true;
}

/** Unused bytes in a struct. */
export const pad = (size: number): Pad => ({ size, padding: true, put: () => {}, get: () => 0 as never });

/** A C struct: encode, decode and type from one table. */
export class Struct<F extends Fields> implements Codec<FieldValues<F>> {
  readonly size: number;
  readonly fields: F;

  constructor(fields: F) {
    this.fields = fields;
    let size = 0;
    for (const name in fields) size += fields[name]!.size;
    this.size = size;
  }

  put(wire: Wire, values: FieldValues<F>): void {
    this.putPart(wire, values as Record<string, unknown> as Partial<FieldValues<F>>);
  }

  /** Fields left out are written as zero. */
  putPart(wire: Wire, values: Partial<FieldValues<F>>): void {
    for (const name in this.fields) {
      const codec = this.fields[name]!;
      const value = (values as Record<string, unknown>)[name];
      if (value === undefined) wire.skip(codec.size);
      else put(name, codec, wire, value, values);
    }
  }

  /** Fields that lie beyond `to` (an older kernel's shorter struct) are left out. */
  get(wire: Wire, from: number, to: number): FieldValues<F> {
    const out: Record<string, unknown> = {};
    let at = from;
    for (const name in this.fields) {
      const codec = this.fields[name]!;
      if (at + codec.size > to) break;
      if (!("padding" in codec)) out[name] = codec.get(wire, at, at + codec.size, out);
      at += codec.size;
    }
    return out as FieldValues<F>;
  }
}

/** Attributes by name: their number in the kernel's header, and how the payload is written. */
export type Entries = { readonly [name: string]: readonly [type: number, codec: Codec<any>] };

/** The values of attributes; all are optional. */
export type AttributeValues<E extends Entries> = { -readonly [K in keyof E]?: ValueOf<E[K][1]> | undefined };

/**
 * A set of attributes: encode, decode and type from one table. As the codec of an attribute it nests. What the
 * kernel sends and the table does not name is passed over.
 */
export class Attributes<const E extends Entries> implements Codec<AttributeValues<E>> {
  readonly nested = true;
  readonly #make: () => E;
  #entries: E | undefined;
  #byType: [name: string, codec: Codec<unknown>][] | undefined;

  /** The table is made when it is first needed: a plugin that runs for 4 ms uses few of them. */
  constructor(make: () => E) {
    this.#make = make;
  }

  get entries(): E {
    this.#entries ??= this.#make();
    return this.#entries;
  }

  put(wire: Wire, values: AttributeValues<E>): void {
    const { entries } = this;
    for (const name in values) {
      const value: unknown = values[name];
      const entry = entries[name];
      if (value === undefined || entry === undefined) continue;
      const [type, codec] = entry;
      if (codec.each === undefined) putAttribute(wire, name, type, codec, value, values);
      else for (const item of value as unknown[]) putAttribute(wire, name, type, codec.each, item, values);
    }
  }

  get(wire: Wire, from: number, to: number): AttributeValues<E> {
    const out: Record<string, unknown> = {};
    for (let at = from; at + 4 <= to; ) {
      const length = wire.view.getUint16(at, true);
      if (length < 4 || at + length > to)
        throw new RangeError(`attribute of ${length} bytes at ${at}..${to}`);
      const entry = this.#entryOf(wire.view.getUint16(at + 2, true) & NLA_TYPE_MASK);
      if (entry !== undefined) {
        const [name, codec] = entry;
        const value = (codec.each ?? codec).get(wire, at + 4, at + length, out);
        if (codec.each === undefined) out[name] = value;
        else if (out[name] === undefined) out[name] = [value];
        else (out[name] as unknown[]).push(value);
      }
      at += (length + 3) & ~3;
    }
    return out as AttributeValues<E>;
  }

  /** By number; the index is made when something is first read. */
  #entryOf(type: number): [name: string, codec: Codec<unknown>] | undefined {
    if (this.#byType === undefined) {
      const { entries } = this;
      this.#byType = [];
      for (const name in entries) this.#byType[entries[name]![0]] = [name, entries[name]![1]];
    }
    return this.#byType[type];
  }
}

function putAttribute(
  wire: Wire,
  name: string,
  type: number,
  codec: Codec<unknown>,
  value: unknown,
  siblings: object,
): void {
  const start = wire.skip(4);
  put(name, codec, wire, value, siblings);
  const length = wire.at - start;
  if (length > 0xffff) throw new RangeError(`${name}: ${length} bytes are too many for an attribute`);
  wire.view.setUint16(start, length, true);
  wire.view.setUint16(start + 2, codec.nested ? type | NLA_F_NESTED : type, true);
  wire.align();
}

/** Writes one value; a value out of range is reported with the path of its key. */
function put(name: string, codec: Codec<unknown>, wire: Wire, value: unknown, siblings: object): void {
  try {
    codec.put(wire, value, siblings);
  } catch (error) {
    if (error instanceof RangeError) throw new RangeError(`${name}: ${error.message}`);
    throw error;
  }
}

/** An attribute that stands in the message once for each element. */
export function each<T>(codec: Codec<T>): Codec<T[]> {
  const never = () => {
    throw new Error("a repeated attribute is written by its table");
  };
  return { each: codec as Codec<unknown>, put: never, get: never };
}

/** A list as attributes that nest in one, numbered from 1 (TCA_U32_ACT). */
export function numbered<T>(codec: Codec<T>): Codec<T[]> {
  return {
    nested: true,
    listOf: codec as Codec<unknown>,
    put(wire, values) {
      for (const [i, value] of values.entries())
        putAttribute(wire, String(i), i + 1, codec as Codec<unknown>, value, values);
    },
    get(wire, from, to) {
      const out: T[] = [];
      for (let at = from; at + 4 <= to; ) {
        const length = wire.view.getUint16(at, true);
        if (length < 4 || at + length > to) throw new RangeError(`list element of ${length} bytes`);
        out.push(codec.get(wire, at + 4, at + length, out));
        at += (length + 3) & ~3;
      }
      return out;
    },
  };
}

/** A struct with attributes behind it, as one flat object (VETH_INFO_PEER). Not marked as nested. */
export function headed<F extends Fields, E extends Entries>(
  header: Struct<F>,
  attributes: Attributes<E>,
): Codec<Partial<FieldValues<F>> & AttributeValues<E>> {
  return {
    put(wire, value) {
      header.putPart(wire, value);
      wire.align();
      attributes.put(wire, value);
    },
    get(wire, from, to) {
      const behind = from + ((header.size + 3) & ~3);
      return { ...header.get(wire, from, to), ...attributes.get(wire, behind, to) };
    },
  };
}

/**
 * A list of structs with attributes behind each, led by the length of both in a u16 (RTA_MULTIPATH of struct
 * rtnexthop). Each element is one flat object.
 */
export function counted<F extends Fields, E extends Entries>(
  header: Struct<F>,
  attributes: Attributes<E>,
): Codec<(Partial<FieldValues<F>> & AttributeValues<E>)[]> {
  const behind = 2 + header.size;
  return {
    put(wire, values) {
      for (const value of values) {
        const start = wire.skip(2);
        header.putPart(wire, value);
        attributes.put(wire, value);
        wire.view.setUint16(start, wire.at - start, true);
      }
    },
    get(wire, from, to) {
      const out = [];
      for (let at = from; at + behind <= to; ) {
        const length = wire.view.getUint16(at, true);
        if (length < behind || at + length > to) throw new RangeError(`list element of ${length} bytes`);
        out.push({
          ...header.get(wire, at + 2, at + behind),
          ...attributes.get(wire, at + behind, at + length),
        });
        at += (length + 3) & ~3;
      }
      return out;
    },
  };
}

/**
 * Attributes whose table is chosen by the sibling `key`: with kind "bridge" the value is { bridge: … }. A kind
 * that is not declared is neither written nor read.
 */
export function chosenBy<const K extends Readonly<Record<string, Attributes<any>>>>(
  key: string,
  kinds: K,
): Codec<{ -readonly [P in keyof K]?: ValueOf<K[P]> | undefined }> {
  const chosen = (siblings: object) => (siblings as Record<string, string | undefined>)[key] ?? "";
  return {
    nested: true,
    put(wire, value, siblings) {
      const kind = chosen(siblings);
      const values = value[kind];
      if (values !== undefined) kinds[kind]?.put(wire, values);
    },
    get(wire, from, to, siblings) {
      const kind = chosen(siblings);
      const values = kinds[kind]?.get(wire, from, to);
      return (values === undefined ? {} : { [kind]: values }) as { [P in keyof K]?: ValueOf<K[P]> };
    },
  };
}
