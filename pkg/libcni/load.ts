import { readdirSync, readFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { CniError, ErrorCode, messageOf } from "@tscni/types";
import { confListFromConf, parseConfList, parsePluginConf } from "./conflist.ts";
import type { NetworkConfigList, PluginConfig } from "./model.ts";

/** The files of a folder with one of these extensions, sorted by name; none if the folder is missing. */
export function listConfFiles(
  dir: string,
  extensions: readonly string[] = [".conflist", ".conf", ".json"],
): string[] {
  try {
    return readdirSync(dir, { withFileTypes: true })
      .filter((entry) => !entry.isDirectory() && extensions.includes(extname(entry.name)))
      .map((entry) => join(dir, entry.name))
      .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw ioError(`failed to read the folder ${dir}`, error);
  }
}

/**
 * Reads a conflist, and appends the plugins that lie in `<its folder>/<network name>/*.conf` unless
 * `loadOnlyInlinedPlugins` is set. Throws when there is no plugin at all.
 */
export function confListFromFile(file: string): NetworkConfigList {
  const list = parseConfList(read(file), { source: file });
  if (!list.loadOnlyInlinedPlugins) {
    // A name with a separator would lead out of the folder; ADD refuses it anyway.
    const own = /[/\\]|^\.\.?$|^$/.test(list.name)
      ? []
      : listConfFiles(join(dirname(file), list.name), [".conf"]);
    list.plugins.push(...own.map(confFromFile));
  }
  if (list.plugins.length === 0)
    throw new CniError(ErrorCode.InvalidNetworkConfig, "no plugin configs found", { details: `in ${file}` });
  return list;
}

/** Reads a file with one plugin object. */
export function confFromFile(file: string): PluginConfig {
  return parsePluginConf(read(file), { source: file });
}

/**
 * The network with this name among the files of a folder: first all *.conflist, then *.conf and *.json, each
 * sorted by name; the first match wins, and a file that can't be parsed ends the search (as in Go).
 */
export function loadConfList(dir: string, name: string): NetworkConfigList {
  const lists = listConfFiles(dir, [".conflist"]);
  for (const file of lists) {
    const list = confListFromFile(file);
    if (list.name === name) return list;
  }
  const singles = listConfFiles(dir, [".conf", ".json"]);
  for (const file of singles) {
    const conf = confFromFile(file);
    if (conf.name === name) return confListFromConf(conf);
  }
  throw new CniError(
    ErrorCode.InvalidNetworkConfig,
    lists.length + singles.length === 0
      ? `no net configurations found in ${dir}`
      : `no net configuration with name "${name}" in ${dir}`,
  );
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw ioError(`error reading ${file}`, error);
  }
}

function ioError(what: string, error: unknown): CniError {
  return new CniError(ErrorCode.IoFailure, `${what}: ${messageOf(error)}`, { cause: error });
}
