import {
  isErrno,
  mkdirAll,
  O,
  readDir,
  readTextFileIfPresent,
  rename,
  rmdir,
  sha256,
  stat,
  unlinkIfPresent,
  writeTextFile,
} from "@tscni/sys";
import { messageOf } from "@tscni/types";

/** Whose record it is: one interface of one container on one network. */
export interface Owner {
  readonly network: string;
  readonly containerId: string;
  readonly ifName: string;
}

/** An owner as GC's list has it. */
export interface ValidOwner {
  readonly containerID: string;
  readonly ifname: string;
}

/** A record as {@link listRecords} finds it. */
export interface Recorded<T> extends Owner {
  /** Undefined when the file is damaged. */
  readonly data: T | undefined;
  /** The file. */
  readonly path: string;
}

/** Not kept over a reboot, and neither is what the records tell about: rules and links. */
const root = "/run/tscni";

/** Ids may be longer than a file name. "#" is in no id, network or interface name that is kept as it is. */
const part = (name: string): string => (name.length <= 100 ? name : `#${sha256(name).slice(0, 32)}`);

const folderOf = (kind: string, network: string): string => `${root}/${kind}/${part(network)}`;
const nameOf = (containerId: string, ifName: string): string => `${part(containerId)}:${ifName}`;
const pathOf = (kind: string, owner: Owner): string =>
  `${folderOf(kind, owner.network)}/${nameOf(owner.containerId, owner.ifName)}`;

/** Where a record is written before it gets its name: no more than one of an owner, so that its removal finds it. */
const temporaryOf = ({ network, containerId, ifName }: Owner, kind: string): string =>
  `${folderOf(kind, network)}/.${nameOf(containerId, ifName)}`;

/**
 * Writes an owner's record, in place of one that is there. It appears whole or not at all, mode 0600. Write it before
 * the act that it tells of, so that whoever comes after a kill knows what to look for.
 */
export function writeRecord(kind: string, owner: Owner, data: object): void {
  const { network, containerId, ifName } = owner;
  const folder = folderOf(kind, network);
  const temporary = temporaryOf(owner, kind);
  const text = JSON.stringify({ network, containerId, ifName, data });
  for (let attempt = 0; ; attempt++) {
    try {
      writeTextFile(temporary, text, O.WRONLY | O.CREAT | O.TRUNC, 0o600);
      rename(temporary, pathOf(kind, owner));
      return;
    } catch (error) {
      // Missing at first, or taken away by the removal of the network's last record just now.
      if (isErrno(error, "ENOENT") && attempt < 5) {
        mkdirAll(folder, 0o700);
        continue;
      }
      unlinkIfPresent(temporary);
      throw error;
    }
  }
}

/** An owner's record, or undefined when there is none; one that can't be read is reported and counts as none. */
export function readRecord<T>(
  kind: string,
  owner: Owner,
  warn: (message: string) => void = () => {},
): T | undefined {
  return dataOf<T>(pathOf(kind, owner), warn)?.data;
}

/** Whether an owner has a record, readable or not. */
export const hasRecord = (kind: string, owner: Owner): boolean =>
  readTextFileIfPresent(pathOf(kind, owner)) !== undefined;

/** Removes an owner's record, and what a killed writer left of one; returns whether there was one. */
export function removeRecord(kind: string, owner: Owner): boolean {
  const removed = unlinkIfPresent(pathOf(kind, owner));
  unlinkIfPresent(temporaryOf(owner, kind));
  removeIfEmpty(folderOf(kind, owner.network)); // also one that a writer made, and was killed before it wrote
  return removed;
}

function removeIfEmpty(folder: string): void {
  try {
    rmdir(folder);
  } catch (error) {
    if (!isErrno(error, "ENOTEMPTY", "EEXIST", "ENOENT", "ENOTDIR", "EBUSY")) throw error;
  }
}

/** Whether nobody but an owner, if he, has a record of a kind. */
export function isOnlyRecord(kind: string, owner: Owner): boolean {
  const own = nameOf(owner.containerId, owner.ifName);
  return namesIn(`${root}/${kind}`).every((network) =>
    namesIn(`${root}/${kind}/${network}`).every(
      (name) => name.startsWith(".") || (network === part(owner.network) && name === own),
    ),
  );
}

/** Whether nobody else on the owner's network has a record of a kind. */
export function isOnlyOfNetwork(kind: string, { network, containerId, ifName }: Owner): boolean {
  const own = nameOf(containerId, ifName);
  return namesIn(folderOf(kind, network)).every((name) => name.startsWith(".") || name === own);
}

/** All records of a network. What a killed writer left half-written is removed on the way. */
export function listRecords<T>(
  kind: string,
  network: string,
  warn: (message: string) => void = () => {},
): Recorded<T>[] {
  const folder = folderOf(kind, network);
  const found: Recorded<T>[] = [];
  for (const name of namesIn(folder)) {
    const path = `${folder}/${name}`;
    if (name.startsWith(".")) {
      removeIfOld(path);
      continue;
    }
    const colon = name.lastIndexOf(":");
    const record = dataOf<T>(path, warn);
    found.push({
      network,
      containerId: record?.containerId ?? name.slice(0, colon),
      ifName: record?.ifName ?? name.slice(colon + 1),
      data: record?.data,
      path,
    });
  }
  return found;
}

/**
 * The records of a network whose owners are not in GC's list. What their killed writers left half-written is removed;
 * one that writes just now, against the rules, starts again.
 */
export function staleRecords<T>(
  kind: string,
  network: string,
  valid: readonly ValidOwner[],
  warn?: (message: string) => void,
): Recorded<T>[] {
  const names = new Set(valid.map(({ containerID, ifname }) => `${containerID}:${ifname}`));
  const files = new Set(valid.map(({ containerID, ifname }) => `.${nameOf(containerID, ifname)}`));
  const folder = folderOf(kind, network);
  for (const name of namesIn(folder))
    if (name.startsWith(".") && !files.has(name)) unlinkIfPresent(`${folder}/${name}`);
  removeIfEmpty(folder);
  return listRecords<T>(kind, network, warn).filter(
    ({ containerId, ifName }) => !names.has(`${containerId}:${ifName}`),
  );
}

/** The networks that have records of a kind, as far as their names are kept (100 characters). */
export const recordedNetworks = (kind: string): string[] => namesIn(`${root}/${kind}`);

function namesIn(folder: string): string[] {
  try {
    return readDir(folder).sort();
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}

interface File<T> {
  containerId: string;
  ifName: string;
  data: T;
}

function dataOf<T>(path: string, warn: (message: string) => void): File<T> | undefined {
  try {
    const text = readTextFileIfPresent(path);
    if (text === undefined) return undefined;
    const file = JSON.parse(text) as Partial<File<T>> | null;
    if (typeof file?.data === "object" && file.data !== null && typeof file.containerId === "string")
      return file as File<T>;
    warn(`ignoring ${path}: not a record`);
  } catch (error) {
    warn(`ignoring ${path}: ${messageOf(error)}`);
  }
  return undefined;
}

/** Writing takes less than a millisecond; what is there for a minute was left by a killed process. */
function removeIfOld(path: string): void {
  try {
    const age = BigInt(Date.now()) * 1_000_000n - stat(path).mtimeNs;
    if (age > 60_000_000_000n) unlinkIfPresent(path);
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
  }
}
