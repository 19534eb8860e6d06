import type { Ip } from "@tscni/addr";
import type { Wire } from "./wire.ts";

/**
 * How one payload is written and read. `siblings` are the values beside it in the same table, for a payload
 * whose form depends on one of them (IFLA_INFO_DATA on IFLA_INFO_KIND).
 */
export interface Codec<T> {
  put(wire: Wire, value: T, siblings: object): void;
  /** Reads from `from` up to `to`; throws RangeError when that is too short. */
  get(wire: Wire, from: number, to: number, siblings: object): T;
  /** Bytes, where that is fixed: such a codec can be a field of a struct. */
  readonly size?: number;
  /** Whether the attribute carries NLA_F_NESTED. */
  readonly nested?: true;
  /** For an attribute that stands in the message once for each element of the value, an array. */
  readonly each?: Codec<unknown>;
  /** For an attribute whose value is an array: what each element is. */
  readonly listOf?: Codec<unknown>;
}

export type ValueOf<C> = C extends Codec<infer T> ? T : never;

/** A codec of fixed size, fit for a struct's field. */
export interface Fixed<T> extends Codec<T> {
  readonly size: number;
}

function integer(
  name: string,
  size: number,
  min: number,
  max: number,
  write: (view: DataView, at: number, value: number) => void,
  read: (view: DataView, at: number) => number,
): Fixed<number> {
  return {
    size,
    put(wire, value) {
      if (!(Number.isInteger(value) && value >= min && value <= max))
        throw new RangeError(`${value} is not a ${name}`);
      const at = wire.skip(size); // may exchange the view
      write(wire.view, at, value);
    },
    get(wire, from, to) {
      need(size, from, to);
      return read(wire.view, from);
    },
  };
}

function need(size: number, from: number, to: number): void {
  if (to - from < size) throw new RangeError(`${to - from} bytes where ${size} were expected`);
}

export const u8 = integer("u8", 1, 0, 0xff, setU8, (v, at) => v.getUint8(at));
export const u16 = integer("u16", 2, 0, 0xffff, setU16, (v, at) => v.getUint16(at, true));
export const u16be = integer("u16", 2, 0, 0xffff, setU16be, (v, at) => v.getUint16(at));
export const u32 = integer("u32", 4, 0, 0xffffffff, setU32, (v, at) => v.getUint32(at, true));
export const u32be = integer("u32", 4, 0, 0xffffffff, setU32be, (v, at) => v.getUint32(at));
export const i32 = integer("i32", 4, -0x80000000, 0x7fffffff, setI32, (v, at) => v.getInt32(at, true));

function setU8(view: DataView, at: number, value: number): void {
  view.setUint8(at, value);
}
function setU16(view: DataView, at: number, value: number): void {
  view.setUint16(at, value, true);
}
function setU16be(view: DataView, at: number, value: number): void {
  view.setUint16(at, value);
}
function setU32(view: DataView, at: number, value: number): void {
  view.setUint32(at, value, true);
}
function setU32be(view: DataView, at: number, value: number): void {
  view.setUint32(at, value);
}
function setI32(view: DataView, at: number, value: number): void {
  view.setInt32(at, value, true);
}

export const u64: Fixed<bigint> = {
  size: 8,
  put(wire, value) {
    if (value < 0n || value >> 64n !== 0n) throw new RangeError(`${value} is not a u64`);
    const at = wire.skip(8);
    wire.view.setBigUint64(at, value, true);
  },
  get(wire, from, to) {
    need(8, from, to);
    return wire.view.getBigUint64(from, true);
  },
};

export const u64be: Fixed<bigint> = {
  size: 8,
  put(wire, value) {
    if (value < 0n || value >> 64n !== 0n) throw new RangeError(`${value} is not a u64`);
    const at = wire.skip(8);
    wire.view.setBigUint64(at, value);
  },
  get(wire, from, to) {
    need(8, from, to);
    return wire.view.getBigUint64(from);
  },
};

/** A u8 that is 0 or 1 (anything else reads as true). */
export const bool: Fixed<boolean> = {
  size: 1,
  put: (wire, value) => u8.put(wire, value ? 1 : 0, wire),
  get: (wire, from, to) => u8.get(wire, from, to, wire) !== 0,
};

/** An attribute without payload: its presence is the value. Only `true` can be sent. */
export const flag: Codec<true> = { put: () => {}, get: () => true };

/** Bytes as they are; reading makes a copy. */
export const bytes: Codec<Uint8Array> = {
  put: (wire, value) => wire.putBytes(value),
  get: (wire, from, to) => wire.bytes.slice(from, to),
};

/** NUL-terminated UTF-8. */
export const cString: Codec<string> = {
  put(wire, value) {
    if (value.includes("\0")) throw new RangeError(`${JSON.stringify(value)} contains a NUL`);
    wire.putText(value);
    wire.skip(1);
  },
  get(wire, from, to) {
    let end = from;
    while (end < to && wire.bytes[end] !== 0) end++;
    return text(wire.bytes.subarray(from, end));
  },
};

let decoder: TextDecoder | undefined;

/** UTF-8 text; the ASCII of interface names without a decoder. */
function text(data: Uint8Array): string {
  let out = "";
  for (const byte of data) {
    if (byte >= 0x80) {
      decoder ??= new TextDecoder();
      return decoder.decode(data);
    }
    out += String.fromCharCode(byte);
  }
  return out;
}

/** A link-layer address as lower-case text, "02:42:ac:11:00:02"; of any length (InfiniBand has 20 bytes). */
export const mac: Codec<string> = {
  put(wire, value) {
    let malformed = value.length % 3 !== 2;
    const start = malformed ? 0 : wire.skip((value.length + 1) / 3);
    for (let i = 0; i < value.length && !malformed; i += 3) {
      const high = hexDigit(value.charCodeAt(i));
      const low = hexDigit(value.charCodeAt(i + 1));
      const isLast = i + 2 === value.length;
      malformed = high < 0 || low < 0 || !(isLast || value[i + 2] === ":");
      wire.bytes[start + i / 3] = high * 16 + low;
    }
    if (malformed) throw new RangeError(`${JSON.stringify(value)} is not a link-layer address`);
  },
  get(wire, from, to) {
    let out = "";
    for (let i = from; i < to; i++) out += (i > from ? ":" : "") + hexPair(wire.bytes[i]!);
    return out;
  },
};

const hexPair = (byte: number): string => (byte < 16 ? "0" : "") + byte.toString(16);

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/** An IPv4 or IPv6 address, 4 or 16 bytes of network byte order. */
export const ip: Codec<Ip> = {
  put(wire, value) {
    const at = wire.skip(value.family === 4 ? 4 : 16);
    if (value.family === 4) return wire.view.setUint32(at, Number(value.value));
    wire.view.setBigUint64(at, value.value >> 64n);
    wire.view.setBigUint64(at + 8, value.value & 0xffffffffffffffffn);
  },
  get(wire, from, to) {
    if (to - from === 4) return { family: 4, value: BigInt(wire.view.getUint32(from)) };
    need(16, from, to);
    return { family: 6, value: (wire.view.getBigUint64(from) << 64n) | wire.view.getBigUint64(from + 8) };
  },
};
