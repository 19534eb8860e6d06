import { isRegularFile, readTextFileIfPresent, stat, statIfPresent } from "@tscni/sys";
import { addressesIn } from "./folder.ts";
import type { Store } from "./store.ts";

/*
 * Containers do not survive a reboot, their reservations do: so once per boot and network those are released
 * that are older than this boot. Wrong here means that two containers get one address, so in doubt a
 * reservation stays:
 *
 * - A file counts as old when it was written before the kernel started, by file time and clock. The kernel's
 *   idea of when it started (btime) moves when the clock is set: a node that boots in 1970 and then hears from
 *   NTP says it booted just now, and every file since looks older than the boot. Device nodes that the kernel
 *   made early have the clock of those days; the earliest of all these times counts, less a margin.
 * - In a time namespace btime is shifted: nothing is released.
 * - On a network file system the folder may be another machine's too, with containers that run: nothing is
 *   released.
 * - Another container or mount namespace on the same machine sees the same boot_id and btime, so it comes to the
 *   same answer. A "node" that is itself a container restarts without a boot: nothing is released; that is
 *   what GC is for.
 */

const marginNs = 10_000_000_000n;
const earlyNodes = ["/dev/null", "/dev/zero", "/dev/full", "/proc/1", "/sys"];
const sharedFileSystems =
  /^(nfs|nfs4|cifs|smb3|smbfs|ceph|9p|afs|ocfs2|gfs2|lustre|glusterfs|virtiofs|fuse\..*)$/;

/** Releases what earlier boots left, unless this boot has done so already. Says what it released. */
export function releaseEarlierBoots(store: Store, warn: (message: string) => void): void {
  if (!store.isFirstOfBoot) return;
  const before = bootTimeNs();
  if (before !== undefined && !isShared(store.folder.path) && !hasShiftedClock()) {
    const released = releaseWrittenBefore(store, before - marginNs);
    if (released.length > 0)
      warn(
        `released ${released.length} addresses reserved before the last boot: ${released.slice(0, 10).join(" ")}`,
      );
  }
  store.setSwept();
  store.save();
}

/** Releases every reservation whose file was last written before the given time (ns since 1970). */
export function releaseWrittenBefore(store: Store, timeNs: bigint): string[] {
  const released: string[] = [];
  for (const ip of addressesIn(store.folder.names()).sort()) {
    const file = statIfPresent(`${store.folder.path}/${ip}`);
    if (file && isRegularFile(file) && file.mtimeNs < timeNs && store.release(ip)) released.push(ip);
  }
  return released;
}

/** When this boot began, at the latest: ns since 1970. */
function bootTimeNs(): bigint | undefined {
  const btime = /^btime (\d+)$/m.exec(readTextFileIfPresent("/proc/stat") ?? "")?.[1];
  if (btime === undefined) return undefined;
  let earliest = BigInt(btime) * 1_000_000_000n;
  for (const path of earlyNodes) {
    const node = statIfPresent(path);
    if (node && node.mtimeNs < earliest) earliest = node.mtimeNs;
  }
  return earliest;
}

/** Whether this process's time namespace has an offset. https://man7.org/linux/man-pages/man7/time_namespaces.7.html */
function hasShiftedClock(): boolean {
  const offsets = readTextFileIfPresent("/proc/self/timens_offsets") ?? "";
  return offsets.split("\n").some((line) => /[1-9]/.test(line));
}

/** Whether the folder lies on a file system that other machines may write to. */
function isShared(dir: string): boolean {
  return isSharedDevice(readTextFileIfPresent("/proc/self/mountinfo") ?? "", stat(dir).dev);
}

/** The same by proc_pid_mountinfo(5) text and `st_dev` (major number in the upper half). */
export function isSharedDevice(mountinfo: string, dev: bigint): boolean {
  const device = `${dev >> 32n}:${dev & 0xffffffffn}`;
  return mountinfo.split("\n").some((line) => {
    const fields = line.split(" ");
    return fields[2] === device && sharedFileSystems.test(fields[fields.indexOf("-") + 1] ?? "");
  });
}
