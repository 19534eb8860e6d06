import {
  isErrno,
  mkdirAll,
  O,
  readDir,
  readTextFileIfPresent,
  rename,
  unlinkIfPresent,
  writeTextFile,
} from "@tscni/sys";
import type { Settings } from "./settings.ts";

/**
 * What an attachment's interface had before it was tuned: the reference's file, which has the settings alone. Its
 * plugin passes over the keys that we add.
 */
export interface Backup extends Settings {
  /** Whose it is: the file's name does not tell. Absent in the reference's files. */
  network?: string;
  /** The interface that was tuned: its namespace's inode and its index there. Absent in the reference's files. */
  link?: { netns: number; index: number };
  /** Values of the interface's own sysctls, by their paths below /proc/sys. */
  sysctl?: Record<string, string>;
}

interface Owner {
  containerId: string;
  ifName: string;
}

const fileName = ({ containerId, ifName }: Owner): string => `${containerId}_${ifName}.json`;

/** The file of an attachment's backup. */
export const backupPath = (dataDir: string, owner: Owner): string => `${dataDir}/${fileName(owner)}`;

/** Reads a backup; undefined when there is none. A damaged one is reported and holds nothing. */
export function readBackup(path: string, warn: (message: string) => void): Backup | undefined {
  const text = readTextFileIfPresent(path);
  if (text === undefined) return undefined;
  const backup = parsed(text);
  if (backup === undefined) warn(`${path}: damaged, nothing is restored from it`);
  return backup ?? {};
}

function parsed(text: string): Backup | undefined {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === "object" && json !== null ? json : undefined;
  } catch {
    return undefined;
  }
}

/** Makes a backup appear whole, with its folder, which only root may read. */
export function writeBackup(dataDir: string, path: string, backup: Backup): void {
  const { mac, promisc, mtu, allmulti, txQLen, ...ours } = backup;
  const text = JSON.stringify({ mac, promisc, mtu, allmulti, txQLen, ...ours }, null, 1);
  try {
    replace(path, text);
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
    mkdirAll(dataDir, 0o700);
    replace(path, text);
  }
}

/** The name of the temporary file is known, so that DEL finds what is left by one who was killed. */
const temporaryOf = (path: string): string => `${path}.tmp`;

function replace(path: string, text: string): void {
  writeTextFile(temporaryOf(path), text, O.WRONLY | O.CREAT | O.TRUNC, 0o600);
  rename(temporaryOf(path), path);
}

/** Removes a backup, also one half-written; nothing there is fine. Returns whether there was one. */
export function removeBackup(path: string): boolean {
  unlinkIfPresent(temporaryOf(path));
  return unlinkIfPresent(path);
}

/**
 * Removes the backups of a network's attachments that are not in the list, and what one killed while it wrote left of
 * these. Files that do not say whose they are stay. Returns the names of what it removed.
 */
export function removeStaleBackups(
  dataDir: string,
  network: string,
  valid: readonly { containerID: string; ifname: string }[],
): string[] {
  const kept = new Set(valid.map((v) => fileName({ containerId: v.containerID, ifName: v.ifname })));
  const stale = filesIn(dataDir).filter(
    (name) =>
      (name.endsWith(".json") || name.endsWith(".tmp")) &&
      !kept.has(name) &&
      parsed(readTextFileIfPresent(`${dataDir}/${name}`) ?? "")?.network === network,
  );
  return stale.filter((name) => unlinkIfPresent(`${dataDir}/${name}`));
}

function filesIn(dataDir: string): string[] {
  try {
    return readDir(dataDir);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}
