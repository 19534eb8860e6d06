/**
 * The few globals of the Web, of Node and of Bun that plugins use, for an engine that has the language alone
 * (ECMAScript 2020). build.ts puts this in front of every program. What plugins need beyond it is added here, or
 * better, avoided: all of it is paid for by every start.
 */

interface Native {
  libc: object;
  read: object;
  environment: Record<string, string>;
  arguments: string[];
  executable: string;
  pid: number;
  arch: string;
  address(array: ArrayBufferView): number;
  cString(address: number, offset?: number): string;
  encode(text: string): ArrayBuffer;
  encodeInto(text: string, buffer: Uint8Array): number;
  decode(bytes: ArrayBuffer | ArrayBufferView): string;
  nanoseconds(): number;
  sleepMs(ms: number): void;
  fillRandom<T extends ArrayBufferView>(array: T): T;
  sha256(text: string): string;
  sha512(text: string): string;
}

declare const tscniNative: Native;
const native = tscniNative;
const globals = globalThis as unknown as Record<string, unknown>;

globals.Bun = {
  FFI: {
    ptr: native.address,
    read: native.read,
    CString: native.cString,
    dlopen: () => ({ symbols: native.libc }),
  },
  nanoseconds: native.nanoseconds,
  sleepSync: native.sleepMs,
  CryptoHasher: class {
    #hash: (text: string) => string;
    #text = "";
    constructor(algorithm: "sha256" | "sha512") {
      this.#hash = algorithm === "sha256" ? native.sha256 : native.sha512;
    }
    update(text: string): this {
      this.#text += text;
      return this;
    }
    digest(_encoding: "hex"): string {
      return this.#hash(this.#text);
    }
  },
};

globals.process = {
  env: native.environment,
  argv: [native.executable, ...native.arguments], // as Bun has it: the program's own name is the second
  argv0: native.arguments[0] ?? "",
  execPath: native.executable,
  pid: native.pid,
  arch: native.arch,
  platform: "linux",
};

globals.crypto = { getRandomValues: native.fillRandom };

globals.TextEncoder = class {
  encode(text: string): Uint8Array {
    return new Uint8Array(native.encode(text));
  }
  encodeInto(text: string, buffer: Uint8Array): { read: number; written: number } {
    const written = native.encodeInto(text, buffer);
    return written < 0 ? { read: 0, written: buffer.length } : { read: text.length, written };
  }
};
globals.TextDecoder = class {
  decode(bytes: Uint8Array): string {
    return native.decode(bytes);
  }
};

// A plugin that waits has nothing else to do meanwhile.
globals.setTimeout = (work: () => void, ms: number): void => {
  native.sleepMs(ms);
  void Promise.resolve().then(work);
};
globals.clearTimeout = (): void => {};

/** Adds a method that the language has by now. */
function define(prototype: object, name: PropertyKey, value: unknown): void {
  Object.defineProperty(prototype, name, { value, writable: true, configurable: true });
}

function at(this: ArrayLike<unknown>, index: number): unknown {
  return this[index < 0 ? this.length + index : index];
}
function findLast(this: unknown[], test: (item: unknown, index: number) => boolean): unknown {
  for (let i = this.length - 1; i >= 0; i--) if (test(this[i], i)) return this[i];
  return undefined;
}
define(Array.prototype, "at", at);
define(String.prototype, "at", at);
define(Uint8Array.prototype, "at", at);
define(Array.prototype, "findLast", findLast);
define(Array.prototype, "toSorted", function (this: unknown[], compare?: (a: unknown, b: unknown) => number) {
  return this.slice().sort(compare);
});
define(Array.prototype, "toReversed", function (this: unknown[]) {
  return this.slice().reverse();
});
const { hasOwnProperty: owns } = Object.prototype;
define(Object, "hasOwn", (object: object, key: PropertyKey) => owns.call(object, key));
define(Symbol, "dispose", Symbol("Symbol.dispose"));
define(Symbol, "asyncDispose", Symbol("Symbol.asyncDispose"));
