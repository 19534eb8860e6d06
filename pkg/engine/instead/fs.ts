/** What pkg/invoke uses of node:fs, on pkg/sys. */
import { close, isRegularFile, open, read, stat } from "@tscni/sys";

export function statSync(path: string): { isFile(): boolean } {
  const found = stat(path);
  return { isFile: () => isRegularFile(found) };
}

export const openSync = (path: string, _flags: "r"): number => open(path, 0);
export const closeSync = close;

/** Reads from where the descriptor stands, which is all that we need. */
export const readSync = (fd: number, buffer: Uint8Array, offset: number, length: number): number =>
  read(fd, buffer.subarray(offset, offset + length));
