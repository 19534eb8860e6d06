import type * as ffi from "bun:ffi";
import type { Pointer } from "bun:ffi";
import { SysError } from "./errno.ts";
import { symbols } from "./symbols.ts";

/**
 * What the module bun:ffi is made of, without its wrappers in JavaScript: loading those costs every start
 * 0.35 ms. The native functions take numbers, pointers and null, which is all that we pass.
 */
const native = (Bun as unknown as { FFI: Omit<typeof ffi, "CString"> & { CString: typeof textAt } }).FFI;

/** The address of a typed array's first byte, good as long as the array is. */
export const ptr = native.ptr;
/** Reads numbers from memory. */
export const peek = native.read;
/** The C string at an address. */
export const textAt: (address: Pointer | bigint, offset?: number) => string = (address, offset = 0) =>
  native.CString(address, offset);

/**
 * The C library, by its bare soname: that is looked up in the system's library path only, never in the
 * working directory, and names the right library on musl too.
 */
export const libc = native.dlopen("libc.so.6", symbols).symbols;

const EINTR = 4;

/** The errno that the last failing call left. Read it before anything else may call into libc. */
function errno(): number {
  return peek.i32(libc.__errno_location()!, 0);
}

/** Runs a libc call until it is not interrupted by a signal; throws SysError when it returns -1. */
export function checked(name: string, subject: string, call: () => number | bigint): number {
  for (;;) {
    const value = Number(call());
    if (value !== -1) return value;
    const code = errno();
    if (code !== EINTR) throw sysError(code, name, subject);
  }
}

/** The failure of the libc call that has just returned, as an error. */
export function lastError(name: string, subject: string): SysError {
  return sysError(errno(), name, subject);
}

/** Throws for a libc call that returns the errno instead of setting it. */
export function checkedResult(name: string, subject: string, code: number): void {
  if (code !== 0) throw sysError(code, name, subject);
}

function sysError(code: number, name: string, subject: string): SysError {
  return new SysError(code, name, subject, textAt(libc.strerror(code)!).toLowerCase());
}

const pathMax = 4096;
const encoder = new TextEncoder();
const scratch = [new Uint8Array(pathMax), new Uint8Array(pathMax)] as const;

/**
 * A path as a C string, in one of two buffers that the next call with the same slot reuses.
 * Throws SysError ENAMETOOLONG for 4 KiB and more, EINVAL for a NUL within.
 */
export function cPath(path: string, slot: 0 | 1 = 0): Pointer {
  const buffer = scratch[slot];
  const { read: consumed, written } = encoder.encodeInto(path, buffer);
  if (consumed < path.length || written >= pathMax) throw sysError(36, "path", `${path.slice(0, 64)}...`);
  if (path.includes("\0")) throw sysError(22, "path", JSON.stringify(path));
  buffer[written] = 0;
  return ptr(buffer);
}

/**
 * Texts as an array of C strings that ends with a null, as argv and envp are; a NUL within ends a text. The
 * addresses are good as long as both arrays are referred to.
 */
export function cStrings(texts: readonly string[]): { pointers: BigUint64Array; bytes: Uint8Array } {
  const bytes = encoder.encode(`${texts.join("\0")}\0`);
  const pointers = new BigUint64Array(texts.length + 1);
  const start = BigInt(ptr(bytes));
  let at = 0;
  for (let i = 0; i < texts.length; i++) {
    pointers[i] = start + BigInt(at);
    at = bytes.indexOf(0, at) + 1;
  }
  return { pointers, bytes };
}
