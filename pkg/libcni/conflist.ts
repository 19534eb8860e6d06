import { CniError, currentVersion, ErrorCode, parseVersion } from "@tscni/types";
import { field, goJson, isObject, parseJson, sortKeys } from "./json.ts";
import type { JsonObject, NetworkConfigList, PluginConfig } from "./model.ts";

export interface ParseOptions {
  /** The file that the text is from; errors name it. */
  source?: string;
}

/**
 * Parses a conflist: https://www.cni.dev/docs/spec/#configuration-format. As in Go, the list's own keys must be
 * in their exact case while those of the plugins match in any. Throws CniError in the Go library's words.
 */
export function parseConfList(text: string, options: ParseOptions = {}): NetworkConfigList {
  const { fail, inSource } = problems("error parsing configuration list", options.source);
  const raw = inSource(() => parseJson(text, "error parsing configuration list"));
  if (!isObject(raw)) throw fail(`it is ${kindOf(raw)}, not an object`);
  if (!Object.hasOwn(raw, "name")) throw fail(`no name${otherCase(raw, "name")}`);
  const name = raw.name;
  if (typeof name !== "string") throw fail(`invalid name type ${kindOf(name)}`);
  const list: NetworkConfigList = {
    name,
    cniVersion: versionOf(raw, fail),
    disableCheck: readBool(raw, "disableCheck", fail),
    disableGC: readBool(raw, "disableGC", fail),
    loadOnlyInlinedPlugins: readBool(raw, "loadOnlyInlinedPlugins", fail),
    plugins: [],
    bytes: text,
    ...(options.source === undefined ? {} : { source: options.source }),
  };
  if (!Object.hasOwn(raw, "plugins")) {
    if (list.loadOnlyInlinedPlugins)
      throw fail(`\`loadOnlyInlinedPlugins\` is true, and no 'plugins' key${otherCase(raw, "plugins")}`);
    return list;
  }
  if (!Array.isArray(raw.plugins)) throw fail(`invalid 'plugins' type ${kindOf(raw.plugins)}`);
  if (raw.plugins.length === 0) throw fail("no plugins in list");
  list.plugins = raw.plugins.map((plugin, i) =>
    pluginOf(
      plugin,
      problems(`failed to parse plugin config ${i}: error parsing configuration`, options.source).fail,
    ),
  );
  return list;
}

/** Parses one plugin object, as .conf files hold it. */
export function parsePluginConf(text: string, options: ParseOptions = {}): PluginConfig {
  const { fail, inSource } = problems("error parsing configuration", options.source);
  const conf = pluginOf(
    inSource(() => parseJson(text, "error parsing configuration")),
    fail,
  );
  return { ...conf, bytes: text, ...(options.source === undefined ? {} : { source: options.source }) };
}

/** A list with this plugin as its only one. */
export function confListFromConf(conf: PluginConfig): NetworkConfigList {
  const list = { cniVersion: conf.cniVersion, name: conf.name, plugins: [sortKeys(conf.raw)] };
  return parseConfList(goJson(list), conf.source === undefined ? {} : { source: conf.source });
}

type Fail = (message: string) => CniError;

function problems(
  prefix: string,
  source: string | undefined,
): { fail: Fail; inSource: <T>(f: () => T) => T } {
  const details = source === undefined ? {} : { details: `in ${source}` };
  return {
    fail: (message) => new CniError(ErrorCode.InvalidNetworkConfig, `${prefix}: ${message}`, details),
    inSource(f) {
      try {
        return f();
      } catch (error) {
        if (!(error instanceof CniError) || source === undefined) throw error;
        throw new CniError(error.code, error.msg, { ...details, cause: error.cause });
      }
    },
  };
}

/** What libcni itself reads of a plugin object; everything else is the plugin's own affair. */
function pluginOf(raw: unknown, fail: Fail): PluginConfig {
  if (!isObject(raw)) throw fail(`it is ${kindOf(raw)}, not an object`);
  const text = (key: string) => {
    const value = field(raw, key) ?? "";
    if (typeof value !== "string") throw fail(`${key}: ${goJson(value)} is not a string`);
    return value;
  };
  const type = text("type");
  if (type === "") throw fail("missing 'type'");
  const ipam = field(raw, "ipam");
  if (ipam !== undefined && !isObject(ipam)) throw fail(`ipam: ${goJson(ipam)} is not an object`);
  const ipamType = ipam === undefined ? undefined : field(ipam, "type");
  if (ipamType !== undefined && typeof ipamType !== "string")
    throw fail(`ipam.type: ${goJson(ipamType)} is not a string`);
  return {
    type,
    name: text("name"),
    cniVersion: text("cniVersion"),
    capabilities: capabilitiesOf(raw, fail),
    ...(ipam === undefined ? {} : { ipam: ipamType === undefined ? {} : { type: ipamType } }),
    raw,
    bytes: goJson(sortKeys(raw)),
  };
}

function capabilitiesOf(raw: JsonObject, fail: Fail): Record<string, boolean> {
  const value = field(raw, "capabilities") ?? {};
  if (!isObject(value)) throw fail(`capabilities: ${goJson(value)} is not an object`);
  const entries = Object.entries(value).map(([key, on]): [string, boolean] => {
    if (on !== null && typeof on !== "boolean")
      throw fail(`capabilities.${key}: ${goJson(on)} is not true or false`);
    return [key, on === true];
  });
  return Object.fromEntries(entries);
}

/** The newest of `cniVersions` and `cniVersion` that we speak; without `cniVersions`, just `cniVersion`. */
function versionOf(raw: JsonObject, fail: Fail): string {
  const own = Object.hasOwn(raw, "cniVersion") ? raw.cniVersion : "";
  if (typeof own !== "string") throw fail(`invalid cniVersion type ${kindOf(own)}`);
  if (!Object.hasOwn(raw, "cniVersions")) return own;
  if (!Array.isArray(raw.cniVersions)) throw fail(`invalid type for cniVersions: ${kindOf(raw.cniVersions)}`);
  const candidates = raw.cniVersions.map((version: unknown, i): string => {
    if (typeof version !== "string")
      throw fail(`invalid type for cniVersions index ${i}: ${kindOf(version)}`);
    if (compareVersions(version, currentVersion) === undefined)
      throw fail(`invalid cniVersions entry ${version} at index ${i}: it is not a version`);
    return version;
  });
  if (own !== "" && compareVersions(own, currentVersion) === undefined)
    throw fail(`invalid cniVersion ${own}: it is not a version`);
  return (
    [...candidates, ...(own === "" ? [] : [own])]
      .filter((version) => compareVersions(version, currentVersion)! <= 0)
      .reduce((best, version) => (best === "" || compareVersions(version, best)! > 0 ? version : best), "") ||
    own
  );
}

/** Negative, zero or positive; undefined when `a` is no version. An empty one counts as 0.1.0. */
function compareVersions(a: string, b: string): number | undefined {
  const left = parseVersion(a || "0.1.0");
  const right = parseVersion(b || "0.1.0");
  if (left === undefined || right === undefined) return undefined;
  for (let i = 0; i < 3; i++) if (left[i] !== right[i]) return left[i]! - right[i]!;
  return 0;
}

function readBool(raw: JsonObject, key: string, fail: Fail): boolean {
  if (!Object.hasOwn(raw, key)) return false;
  const value = raw[key];
  if (typeof value === "boolean") return value;
  if (typeof value !== "string") throw fail(`invalid type ${kindOf(value)} for ${key}`);
  if (value.toLowerCase() === "true") return true;
  if (value.toLowerCase() === "false") return false;
  throw fail(`invalid value ${JSON.stringify(value.toLowerCase())} for ${key}`);
}

/** The list's own keys count in exact case only, which is easily missed. */
function otherCase(raw: JsonObject, key: string): string {
  const found = Object.keys(raw).find((k) => k.toLowerCase() === key);
  return found === undefined ? "" : ` (the key "${found}" must be written "${key}")`;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return isObject(value) ? "an object" : typeof value === "object" ? "number" : typeof value;
}
