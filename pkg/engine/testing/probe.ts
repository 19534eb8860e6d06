/** What a program can see of its engine and of the globals that it is given: the same on every engine. */
export function probe(): Record<string, unknown> {
  return { text: text(), hashes: hashes(), language: language(), memory: memory() };
}

const samples = ["", "plain", "ä€😀", "a\0b", "\ud800 alone \udc00", "x".repeat(5000)];
const encoder = new TextEncoder();
const decoder = new TextDecoder();

function text() {
  const room = new Uint8Array(16);
  return {
    encoded: samples.map((sample) => Array.from(encoder.encode(sample))),
    again: samples.map((sample) => decoder.decode(encoder.encode(sample))),
    fits: samples.map((sample) =>
      encoder.encode(sample).length < 16 ? encoder.encodeInto(sample, room).written : -1,
    ),
    room: Array.from(room),
    withMark: decoder.decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x7b, 0x7d])),
    notUtf8: decoder.decode(new Uint8Array([0x61, 0xff, 0x62])),
    part: decoder.decode(encoder.encode("0123456789").subarray(3, 6)),
  };
}

function hashes() {
  // Lengths around the ends of blocks.
  const lengths = [0, 1, 55, 56, 63, 64, 65, 111, 112, 127, 128, 1000];
  const hash = (algorithm: "sha256" | "sha512") =>
    lengths.map((n) => new Bun.CryptoHasher(algorithm).update("é".repeat(n)).digest("hex"));
  return { sha256: hash("sha256"), sha512: hash("sha512") };
}

class Counter {
  #count = 0;
  static readonly start = 7;
  increase(): number {
    this.#count += 1;
    return this.#count + Counter.start;
  }
}

function language() {
  const closed: string[] = [];
  {
    using _first = { [Symbol.dispose]: () => closed.push("first") };
    using _second = { [Symbol.dispose]: () => closed.push("second") };
  }
  const counter = new Counter();
  const filled: { missing?: number } = {};
  filled.missing ??= 3;
  const words = ["pear", "fig", "apple", "date"];
  return {
    closed,
    counted: [counter.increase(), counter.increase()],
    filled,
    sorted: words.toSorted(),
    reversed: words.toReversed(),
    last: [words.at(-1), words.at(9), "abc".at(-2), words.findLast((word) => word.length === 4)],
    own: [Object.hasOwn({ a: 1 }, "a"), Object.hasOwn({ a: 1 }, "toString")],
    big: [(1n << 127n).toString(), BigInt.asUintN(64, -1n).toString(16), (2n ** 64n % 97n).toString()],
    regular: "10.1.2.0/24".match(/^(\d+)\.(\d+)/)?.slice(1),
    json: JSON.stringify({ b: [1, null, "\u2028"], a: undefined }, undefined, 4),
    parsed: parses('{"a":1,"a":2}', "[1,2", '"\\ud83d\\ude00"', "1e400", "01", '{"__proto__":1}'),
    numbers: [0.1 + 0.2, 1e21, -0, 2 ** 53, Number("0x10"), Number.parseInt("12px", 10)].map(String),
  };
}

/** The value of each text, or that it is none; errors are worded by the engine. */
const parses = (...texts: string[]) =>
  texts.map((source) => {
    try {
      return JSON.stringify(JSON.parse(source));
    } catch {
      return "not JSON";
    }
  });

function memory() {
  const bytes = new Uint8Array(16);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, 0x0102030405060708n, true);
  view.setInt32(8, -5, true);
  const words = new BigUint64Array(bytes.buffer);
  const { ptr, read } = (Bun as unknown as { FFI: typeof import("bun:ffi") }).FFI;
  return {
    // Nothing holds the array any more when its memory is read.
    temporary: [read.u32(ptr(new Uint32Array([1, 2])), 4), read.u8(ptr(encoder.encode("xyz")), 2)],
    bytes: Array.from(bytes),
    first: words[0]!.toString(),
    clamped: Array.from(new Uint8Array([256, -1, 1.9])),
  };
}
