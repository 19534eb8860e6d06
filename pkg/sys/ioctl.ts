import type { Pointer } from "bun:ffi";
import { checked, libc, ptr } from "./libc.ts";

/** ioctl(2) with a struct, or with a plain number, as its argument. `subject` is what an error names. */
export function ioctl(fd: number, request: number, argument: Uint8Array | number, subject: string): number {
  const value = typeof argument === "number" ? (argument as Pointer) : ptr(argument);
  return checked("ioctl", subject, () => libc.ioctl(fd, request, value));
}

/** struct ifreq with a name and flags, linux/if.h */
export function interfaceRequest(name: string, flags: number): Uint8Array {
  const request = new Uint8Array(40);
  new TextEncoder().encodeInto(name, request.subarray(0, 15));
  request[16] = flags & 0xff;
  request[17] = flags >> 8;
  return request;
}
