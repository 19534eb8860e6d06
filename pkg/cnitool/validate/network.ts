import { dirname, join } from "node:path";
import { listConfFiles, parseConfList } from "@tscni/libcni";
import { atLeast, implicitVersion, isSpecVersion, messageOf } from "@tscni/types";
import type { Io } from "../io.ts";
import { checkList, checkName, checkVersions } from "./list.ts";
import { checkPlugin, type NetworkKeys, typesOf } from "./plugin.ts";
import { ConfFile, error, isObject, warning } from "./report.ts";

/** An executable that a network needs, and where its config says so. */
export interface Needed {
  type: string;
  conf: ConfFile;
  path: string;
}

/** A network config and the plugin files beside it, checked as far as their texts go. */
export interface CheckedNetwork {
  /** The file itself first, then the plugin files of its folder. */
  files: ConfFile[];
  /** Empty texts where the file does not say. */
  network: NetworkKeys;
  needed: Needed[];
}

/** Checks one file: a `.conf` or `.json` file is one plugin's config, anything else a list. */
export function checkNetworkFile(file: string, schemas: Io["schemas"]): CheckedNetwork {
  const conf = new ConfFile(file);
  const raw = conf.document?.value;
  const network = networkKeysOf(raw);
  const checked: CheckedNetwork = { files: [conf], network, needed: [] };
  if (conf.document === undefined) return checked;
  const single = /\.(conf|json)$/.test(file) && !(isObject(raw) && Array.isArray(raw.plugins));
  if (single) checkSingle(checked, conf, raw, schemas);
  else checkConflist(checked, conf, raw, schemas);
  if (!single) addRefusal(conf);
  return checked;
}

function checkSingle(checked: CheckedNetwork, conf: ConfFile, raw: unknown, schemas: Io["schemas"]): void {
  if (isObject(raw)) conf.add([...checkName(raw.name), ...checkVersions({ cniVersion: raw.cniVersion })]);
  addPlugin(checked, conf, raw, "", schemas);
}

function checkConflist(checked: CheckedNetwork, conf: ConfFile, raw: unknown, schemas: Io["schemas"]): void {
  conf.add(checkList(raw));
  if (!isObject(raw)) return;
  if (/\.(conf|json)$/.test(conf.file))
    conf.add([
      warning("plugins", "a list of plugins is only looked for in .conflist files; rename this one"),
    ]);
  const inlined = Array.isArray(raw.plugins) ? raw.plugins : [];
  for (const [i, plugin] of inlined.entries()) addPlugin(checked, conf, plugin, `plugins[${i}]`, schemas);
  const onlyInlined = String(raw.loadOnlyInlinedPlugins).toLowerCase() === "true";
  const beside =
    onlyInlined || checked.network.name === "" ? [] : pluginFiles(conf.file, checked.network.name);
  for (const file of beside) {
    const part = new ConfFile(file);
    checked.files.push(part);
    if (part.document) addPlugin(checked, part, part.document.value, "", schemas);
  }
  if (raw.plugins === undefined && raw.type === undefined && !onlyInlined && beside.length === 0)
    conf.add([
      error("plugins", `missing, and ${join(dirname(conf.file), checked.network.name)} has no .conf files`),
    ]);
}

function addPlugin(
  { network, needed }: CheckedNetwork,
  conf: ConfFile,
  raw: unknown,
  base: string,
  schemas: Io["schemas"],
): void {
  conf.add(checkPlugin(raw, network, schemas), base);
  for (const { path, type } of typesOf(raw))
    needed.push({ type, conf, path: base ? `${base}.${path}` : path });
}

/** Plugins that installers drop beside a conflist: `<folder>/<network name>/*.conf`. */
function pluginFiles(file: string, name: string): string[] {
  return /^[\w.-]+$/.test(name) ? listConfFiles(join(dirname(file), name), [".conf"]) : [];
}

/** What libcni itself objects to, should it be something that no check above knows. */
function addRefusal(conf: ConfFile): void {
  if (conf.problems.some((p) => p.level === "error")) return;
  try {
    parseConfList(conf.text, { source: conf.file });
  } catch (thrown) {
    conf.add([error("", messageOf(thrown))]);
  }
}

function networkKeysOf(raw: unknown): NetworkKeys {
  if (!isObject(raw)) return { name: "", cniVersion: "" };
  const name = typeof raw.name === "string" ? raw.name : "";
  const versions = [raw.cniVersion, ...(Array.isArray(raw.cniVersions) ? raw.cniVersions : [])];
  const known = versions.filter((v) => typeof v === "string" && isSpecVersion(v)) as string[];
  const newest = known.reduce((best, v) => (best === "" || atLeast(v, best) ? v : best), "");
  return { name, cniVersion: newest || (raw.cniVersion ? "" : implicitVersion) };
}
