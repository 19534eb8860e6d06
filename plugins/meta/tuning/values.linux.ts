import { mismatch, readSysctl, writeSysctl } from "@tscni/ip";
import { isErrno } from "@tscni/sys";
import { CniError, ErrorCode, messageOf } from "@tscni/types";
import { type Sysctl, sameValue } from "./sysctls.ts";

// All of these are to be called inside the container's namespace.

/** The values that sysctls have now, by path; those that can only be written are left out. Throws CniError. */
export function currentSysctls(sysctls: readonly Sysctl[]): Record<string, string> {
  const values: Record<string, string> = {};
  for (const sysctl of sysctls) {
    const value = currentValue(sysctl);
    if (value !== undefined) values[sysctl.path] = value;
  }
  return values;
}

/** Undefined when it can only be written, such as net/ipv4/route/flush. */
function currentValue({ key, path }: Sysctl): string | undefined {
  return naming(key, () => {
    try {
      return readSysctl(path);
    } catch (error) {
      if (isErrno(error, "EACCES", "EPERM")) return undefined;
      throw error;
    }
  });
}

/** Throws CniError at the first that the kernel refuses. */
export function writeSysctls(sysctls: readonly Sysctl[]): void {
  for (const { key, path, value } of sysctls)
    naming(`${key} = ${JSON.stringify(value)}`, () => writeSysctl(path, value));
}

/** Throws CniError at the first that has another value. */
export function verifySysctls(sysctls: readonly Sysctl[]): void {
  for (const sysctl of sysctls) {
    const now = currentValue(sysctl);
    if (now !== undefined && !sameValue(now, sysctl.value))
      throw mismatch(`sysctl ${sysctl.key} is ${JSON.stringify(now)}, not ${JSON.stringify(sysctl.value)}`);
  }
}

/** An error of the file system, with the key that it is about. */
function naming<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new CniError(ErrorCode.Internal, `sysctl ${what}: ${messageOf(error)}`, { cause: error });
  }
}
