import { environmentVariable, readTextFileIfPresent, statIfPresent } from "@tscni/sys";

/** The process that holds the lock of iptables-legacy, such as "kube-proxy (pid 17)"; undefined when none is seen. */
export function lockHolder(): string | undefined {
  const lock = statIfPresent(environmentVariable("XTABLES_LOCKFILE") ?? "/run/xtables.lock");
  if (lock === undefined) return undefined;
  // proc(5): "1: FLOCK  ADVISORY  WRITE 708 08:01:3016 0 EOF"
  for (const line of readTextFileIfPresent("/proc/locks")?.split("\n") ?? []) {
    const fields = line.split(" ").filter((field) => field !== "");
    const at = fields.indexOf("WRITE");
    if (at < 0 || fields[1] === "->" || fields[at + 2]?.split(":")[2] !== `${lock.ino}`) continue;
    const pid = fields[at + 1];
    return `${readTextFileIfPresent(`/proc/${pid}/comm`)?.trim() ?? "a process"} (pid ${pid})`;
  }
  return undefined;
}
