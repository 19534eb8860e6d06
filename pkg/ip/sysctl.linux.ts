import { close, isErrno, O, open, read, writeTextFile } from "@tscni/sys";

/** The path of a sysctl given with slashes, such as "net/ipv4/ip_forward". */
const fileOf = (key: string): string => `/proc/sys/${key}`;

const buffer = new Uint8Array(256);

/** Reads a sysctl of the calling thread's namespace, without the newline. Throws SysError. */
export function readSysctl(key: string): string {
  const fd = open(fileOf(key), O.RDONLY);
  try {
    return new TextDecoder().decode(buffer.subarray(0, read(fd, buffer))).trimEnd();
  } finally {
    close(fd);
  }
}

/** Writes a sysctl of the calling thread's namespace. Throws SysError. */
export function writeSysctl(key: string, value: string): void {
  writeTextFile(fileOf(key), value);
}

/** Writes a sysctl if the kernel has it: without IPv6 the whole tree of it is missing. */
export function writeSysctlIfPresent(key: string, value: string): void {
  try {
    writeSysctl(key, value);
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
  }
}

/** Writes a sysctl unless it has that value already; returns whether it was changed. */
export function ensureSysctl(key: string, value: string): boolean {
  if (readSysctl(key) === value) return false;
  writeSysctl(key, value);
  return true;
}
