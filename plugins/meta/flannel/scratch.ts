import {
  isErrno,
  mkdirAll,
  readDir,
  readTextFileIfPresent,
  replaceTextFile,
  unlinkIfPresent,
} from "@tscni/sys";
import type { PluginConf } from "./delegate-conf.ts";

/*
 * The config that a delegate was given at ADD, for its DEL: subnet.env may be another by then. In the reference's
 * place, `<dataDir>/<container>`, and form. That has room for one interface of a container; the next gets a file of its
 * own, `<container>:<interface>`, which the reference does not look for. Whose a file is stands in it, under a key that
 * delegates ignore.
 */

const ifNameKey = "tscni-ifname";

export interface Scratch {
  path: string;
  containerId: string;
  /** Undefined in a file of the reference. */
  ifName: string | undefined;
  /** Undefined when the file is empty or damaged. */
  conf: PluginConf | undefined;
}

/** Writes the file, whole, and returns its path. */
export function writeScratch(dataDir: string, containerId: string, ifName: string, conf: PluginConf): string {
  mkdirAll(dataDir, 0o700);
  const shared = `${dataDir}/${containerId}`;
  const before = readScratch(shared);
  const isOthers = before?.ifName !== undefined && before.ifName !== ifName;
  const path = isOthers ? `${shared}:${ifName}` : shared;
  replaceTextFile(path, JSON.stringify({ ...conf, [ifNameKey]: ifName }));
  return path;
}

/** The file of an attachment; undefined when there is none. */
export function findScratch(dataDir: string, containerId: string, ifName: string): Scratch | undefined {
  const own = readScratch(`${dataDir}/${containerId}:${ifName}`);
  if (own) return own;
  const shared = readScratch(`${dataDir}/${containerId}`);
  return shared?.ifName === undefined || shared.ifName === ifName ? shared : undefined;
}

export function removeScratch({ path }: Pick<Scratch, "path">): void {
  unlinkIfPresent(path);
}

/** All that are there, in no order. */
export function listScratch(dataDir: string): Scratch[] {
  let names: string[];
  try {
    names = readDir(dataDir);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return [];
    throw error;
  }
  return names
    .filter((name) => !name.endsWith(".tmp"))
    .map((name) => readScratch(`${dataDir}/${name}`))
    .filter((scratch) => scratch !== undefined);
}

function readScratch(path: string): Scratch | undefined {
  const text = readTextFileIfPresent(path);
  if (text === undefined) return undefined;
  const containerId = path.slice(path.lastIndexOf("/") + 1).split(":")[0]!;
  const json = parsed(text);
  if (json === undefined) return { path, containerId, ifName: undefined, conf: undefined };
  const { [ifNameKey]: ifName, ...conf } = json;
  return {
    path,
    containerId,
    ifName: typeof ifName === "string" ? ifName : undefined,
    conf: conf as PluginConf,
  };
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const json = JSON.parse(text);
    return typeof json?.type === "string" && typeof json.name === "string" ? json : undefined;
  } catch {
    return undefined;
  }
}
