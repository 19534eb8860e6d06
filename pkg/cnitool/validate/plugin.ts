import { confProblems, confSchema, nearest } from "@tscni/conf";
import type { Finding, Io, PluginSchema } from "../io.ts";
import { error, isObject, shown, warning } from "./report.ts";

/** What the network says of itself, which libcni puts into every plugin's config. */
export interface NetworkKeys {
  name: string;
  cniVersion: string;
}

const common = confSchema({});
const commonKeys = Object.keys(common.entries ?? {});
const runtimeKeys = ["prevResult", "cni.dev/valid-attachments", "cni.dev/attachments"];

/** Conventional capabilities: https://www.cni.dev/docs/conventions/#dynamic-plugin-specific-fields-capabilities--runtime-configuration */
const conventional = [
  "portMappings",
  "ipRanges",
  "bandwidth",
  "dns",
  "ips",
  "mac",
  "infinibandGUID",
  "deviceID",
  "aliases",
  "cgroupPath",
  "io.kubernetes.cri.pod-annotations",
];

/** What is wrong with one plugin's config; paths count from the plugin object. */
export function checkPlugin(raw: unknown, network: NetworkKeys, schemas: Io["schemas"]): Finding[] {
  if (!isObject(raw)) return [error("", `${shown(raw)} is not an object`)];
  const plugin = folded(raw);
  const { type, ipam, capabilities } = plugin;
  return [
    ...checkType("type", type, true),
    ...checkIpam(plugin, ipam, network, schemas),
    ...checkOwnKeys(raw, network, typeof type === "string" && type !== "" ? schemas?.(type) : undefined),
    ...checkCapabilities(capabilities),
    ...checkKeysOfOthers(plugin, network),
  ];
}

/** The names of the executables that a plugin's config asks for, as far as they can be read. */
export function typesOf(raw: unknown): { path: string; type: string }[] {
  if (!isObject(raw)) return [];
  const { type, ipam } = folded(raw);
  const named = [
    { path: "type", type },
    { path: "ipam.type", type: isObject(ipam) ? ipam.type : undefined },
  ];
  return named.flatMap(({ path, type }) =>
    typeof type === "string" && type !== "" && !/[/\\]/.test(type) ? [{ path, type }] : [],
  );
}

/** The config with the common keys spelt as declared and nulls gone: plugins match keys in any case. */
function folded(raw: Record<string, unknown>): Record<string, unknown> {
  const spelling = new Map(commonKeys.map((key) => [key.toLowerCase(), key]));
  return Object.fromEntries(
    Object.entries(raw)
      .filter(([, value]) => value !== null)
      .map(([key, value]) => [spelling.get(key.toLowerCase()) ?? key, value]),
  );
}

/** The name of an executable; a path in its place was a security hole (CVE-2021-20206). */
function checkType(path: string, type: unknown, required: boolean): Finding[] {
  if (type === undefined || type === "")
    return required ? [error(path, "missing: expected the plugin's name")] : [];
  if (typeof type !== "string") return [error(path, `${shown(type)} is not a string`)];
  return /[/\\]/.test(type) ? [error(path, `${shown(type)} is not a name: a path is not allowed`)] : [];
}

/** The plugin's own declaration where there is one; else the keys that all plugins share, and near misses of them. */
function checkOwnKeys(raw: Record<string, unknown>, network: NetworkKeys, schema?: PluginSchema): Finding[] {
  const conf = { ...raw, ...network };
  if (schema) return schema.checkConf(conf);
  const wrong = confProblems(common, conf).map(({ path, message }) => error(path, message));
  const known = new Set(commonKeys.map((key) => key.toLowerCase()));
  const misspelt = Object.keys(raw)
    .filter((key) => !known.has(key.toLowerCase()))
    .flatMap((key) => {
      const meant = key.length > 3 ? nearest(key, commonKeys) : undefined;
      return meant ? [warning(key, `unknown key; did you mean "${meant}"?`)] : [];
    });
  return [...wrong, ...misspelt];
}

/** The IPAM plugin reads the same config, but of it only `ipam` and what all plugins share. */
function checkIpam(
  plugin: Record<string, unknown>,
  ipam: unknown,
  network: NetworkKeys,
  schemas: Io["schemas"],
): Finding[] {
  if (!isObject(ipam)) return [];
  const type = checkType("ipam.type", ipam.type, Object.keys(ipam).length > 0);
  const schema = typeof ipam.type === "string" && ipam.type !== "" ? schemas?.(ipam.type) : undefined;
  if (schema === undefined) return type;
  const shared = Object.entries(plugin).filter(
    ([key]) => commonKeys.includes(key) && key !== "type" && key !== "dns",
  );
  return [...type, ...schema.checkConf({ ...Object.fromEntries(shared), ...network, type: ipam.type })];
}

function checkCapabilities(value: unknown): Finding[] {
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, on]) => {
    const path = `capabilities.${name}`;
    const wrong = typeof on === "boolean" ? [] : [error(path, `${shown(on)} is not true or false`)];
    const meant = conventional.includes(name) ? undefined : nearest(name, conventional);
    return meant ? [...wrong, warning(path, `unknown capability; did you mean "${meant}"?`)] : wrong;
  });
}

/** Keys that libcni or the runtime writes over. */
function checkKeysOfOthers(raw: Record<string, unknown>, network: NetworkKeys): Finding[] {
  const filled = runtimeKeys
    .filter((key) => Object.hasOwn(raw, key))
    .map((key) => warning(key, "the runtime fills this in; what stands here is lost"));
  const replaced = (["name", "cniVersion"] as const)
    .filter((key) => typeof raw[key] === "string" && raw[key] !== network[key] && network[key] !== "")
    .map((key) => warning(key, `${shown(raw[key])} is replaced by the network's ${shown(network[key])}`));
  return [...filled, ...replaced];
}
