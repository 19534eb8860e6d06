import { isErrno } from "./errno.ts";
import { checked, cPath, lastError, libc, peek, ptr, textAt } from "./libc.ts";

/** Flags of open(2), asm-generic/fcntl.h. arm64 differs in O_DIRECTORY and O_NOFOLLOW, so these are not here. */
export const O = {
  RDONLY: 0,
  WRONLY: 1,
  RDWR: 2,
  CREAT: 0o100,
  EXCL: 0o200,
  TRUNC: 0o1000,
  APPEND: 0o2000,
  NONBLOCK: 0o4000,
  CLOEXEC: 0o2000000,
} as const;

/** Opens a file, close-on-exec. Returns the descriptor; throws SysError. */
export function open(path: string, flags: number, mode = 0): number {
  return checked("open", path, () => libc.open(cPath(path), flags | O.CLOEXEC, mode));
}

export function close(fd: number): void {
  libc.close(fd);
}

/** Reads at most `buffer.length` bytes; 0 at the end. Waits when the descriptor is non-blocking. */
export function read(fd: number, buffer: Uint8Array): number {
  for (;;) {
    try {
      return checked("read", `fd ${fd}`, () => libc.read(fd, ptr(buffer), buffer.length));
    } catch (error) {
      if (!isErrno(error, "EAGAIN")) throw error;
      poll(fd, POLLIN);
    }
  }
}

/** Writes every byte; throws SysError (EPIPE when nobody reads any more). */
export function writeAll(fd: number, data: Uint8Array): void {
  for (let done = 0; done < data.length; ) {
    const rest = data.subarray(done);
    try {
      done += checked("write", `fd ${fd}`, () => libc.write(fd, ptr(rest), rest.length));
    } catch (error) {
      if (!isErrno(error, "EAGAIN")) throw error;
      poll(fd, POLLOUT);
    }
  }
}

const POLLIN = 1;
const POLLOUT = 4;

/** Waits until the descriptor is ready, or for `timeoutMs`; returns whether it is ready. */
function poll(fd: number, events: number, timeoutMs = -1): boolean {
  const request = new Int32Array([fd, events]); // struct pollfd: int fd; short events, revents
  return checked("poll", `fd ${fd}`, () => libc.poll(ptr(request), 1, timeoutMs)) > 0;
}

/** Waits until the descriptor has something to read; false after `timeoutMs` without. */
export const waitReadable = (fd: number, timeoutMs: number): boolean => poll(fd, POLLIN, timeoutMs);

/** Everything until the end, at most `limit` bytes (further input makes it throw RangeError). */
export function readToEnd(fd: number, limit = 64 << 20): Uint8Array {
  let buffer = new Uint8Array(16 << 10);
  let length = 0;
  for (;;) {
    const count = read(fd, buffer.subarray(length));
    if (count === 0) return buffer.subarray(0, length);
    length += count;
    if (length > limit) throw new RangeError(`input is longer than ${limit} bytes`);
    if (length === buffer.length) {
      const larger = new Uint8Array(buffer.length * 4);
      larger.set(buffer);
      buffer = larger;
    }
  }
}

/** A whole file as UTF-8 text. */
export function readTextFile(path: string): string {
  const fd = open(path, O.RDONLY);
  try {
    return new TextDecoder().decode(readToEnd(fd));
  } finally {
    close(fd);
  }
}

/** A whole file as text, or undefined when there is none. */
export function readTextFileIfPresent(path: string): string | undefined {
  try {
    return readTextFile(path);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}

/** Writes a file in place (for /proc and /sys, and for temporary files that are then linked or renamed). */
export function writeTextFile(path: string, text: string, flags: number = O.WRONLY, mode = 0o600): void {
  const fd = open(path, flags, mode);
  try {
    writeAll(fd, new TextEncoder().encode(text));
  } finally {
    close(fd);
  }
}

/** Makes a file appear under its name whole or not at all, replacing one that is there. */
export function replaceTextFile(path: string, text: string, mode = 0o600): void {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    writeTextFile(temporary, text, O.WRONLY | O.CREAT | O.TRUNC, mode);
    rename(temporary, path);
  } catch (error) {
    unlinkIfPresent(temporary);
    throw error;
  }
}

export function link(from: string, to: string): void {
  checked("link", to, () => libc.link(cPath(from, 0), cPath(to, 1)));
}

export function rename(from: string, to: string): void {
  checked("rename", to, () => libc.rename(cPath(from, 0), cPath(to, 1)));
}

export function unlink(path: string): void {
  checked("unlink", path, () => libc.unlink(cPath(path)));
}

/** Returns whether there was something to remove. */
export function unlinkIfPresent(path: string): boolean {
  try {
    unlink(path);
    return true;
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return false;
    throw error;
  }
}

export function mkdir(path: string, mode = 0o755): void {
  checked("mkdir", path, () => libc.mkdir(cPath(path), mode));
}

/** Makes a folder and those above it that are missing. */
export function mkdirAll(path: string, mode = 0o755): void {
  try {
    mkdirIfMissing(path, mode);
  } catch (error) {
    const slash = path.lastIndexOf("/");
    if (!isErrno(error, "ENOENT") || slash <= 0) throw error;
    mkdirAll(path.slice(0, slash), mode);
    mkdirIfMissing(path, mode); // once: below /proc it is ENOENT again
  }
}

function mkdirIfMissing(path: string, mode: number): void {
  try {
    mkdir(path, mode);
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
  }
}

export function rmdir(path: string): void {
  checked("rmdir", path, () => libc.rmdir(cPath(path)));
}

export function readlink(path: string): string {
  const buffer = new Uint8Array(4096);
  const length = checked("readlink", path, () => libc.readlink(cPath(path), ptr(buffer), buffer.length));
  return new TextDecoder().decode(buffer.subarray(0, length));
}

/** The names in a folder, unsorted, without "." and "..". */
export function readDir(path: string): string[] {
  const stream = libc.opendir(cPath(path));
  if (stream === null) throw lastError("open", path);
  const names: string[] = [];
  // struct dirent of 64-bit Linux: d_ino 8, d_off 8, d_reclen 2, d_type 1, d_name
  for (let entry = libc.readdir(stream); entry !== null; entry = libc.readdir(stream)) {
    const name = textAt(entry, 19);
    if (name !== "." && name !== "..") names.push(name);
  }
  libc.closedir(stream);
  return names;
}

export interface Stat {
  /** Identifies the file system: major and minor number in one. */
  dev: bigint;
  ino: bigint;
  /** File type and permission bits, as st_mode. */
  mode: number;
  size: bigint;
  /** Nanoseconds since 1970. */
  mtimeNs: bigint;
}

export const isRegularFile = (stat: Stat): boolean => (stat.mode & 0o170000) === 0o100000;
export const isDirectory = (stat: Stat): boolean => (stat.mode & 0o170000) === 0o040000;

const AT_FDCWD = -100;
const STATX_BASIC_STATS = 0x7ff;
const statxNumber = process.arch === "arm64" ? 291 : 332;

/** Follows symbolic links. By the statx system call: its struct (linux/stat.h) is the same on every architecture. */
export function stat(path: string): Stat {
  const buffer = new BigUint64Array(32);
  const at = ptr(buffer);
  checked("stat", path, () => libc.syscall(statxNumber, AT_FDCWD, cPath(path), 0, STATX_BASIC_STATS, at));
  return {
    mode: peek.u16(at, 28),
    ino: peek.u64(at, 32),
    size: peek.u64(at, 40),
    mtimeNs: peek.u64(at, 112) * 1_000_000_000n + BigInt(peek.u32(at, 120)),
    dev: (BigInt(peek.u32(at, 136)) << 32n) | BigInt(peek.u32(at, 140)),
  };
}

export function statIfPresent(path: string): Stat | undefined {
  try {
    return stat(path);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}

/** Sets a file's modification time (nanoseconds since 1970), its access time with it. */
export function setMtime(path: string, mtimeNs: bigint): void {
  const pair = [mtimeNs / 1_000_000_000n, mtimeNs % 1_000_000_000n];
  const times = new BigInt64Array([...pair, ...pair]);
  checked("utimensat", path, () => libc.utimensat(AT_FDCWD, cPath(path), ptr(times), 0));
}

const LOCK_EX = 2;

/** Takes an exclusive flock(2), waiting for it; it goes with the descriptor, also when the process dies. */
export function lockExclusive(fd: number): void {
  checked("flock", `fd ${fd}`, () => libc.flock(fd, LOCK_EX));
}
