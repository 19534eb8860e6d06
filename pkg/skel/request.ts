import {
  atLeast,
  CniError,
  ErrorCode,
  implicitVersion,
  messageOf,
  shown,
  verifyContainerId,
  verifyInterfaceName,
  verifyNetworkName,
} from "@tscni/types";
import type { Io } from "./io.ts";
import type { Command, Plugin } from "./plugin.ts";

/** One call of a plugin, its environment and the general part of its config checked. */
export interface Request {
  command: string;
  containerId: string;
  netns: string;
  ifName: string;
  args: string;
  path: string;
  stdin: string;
  /** The config, parsed. */
  json: Record<string, unknown>;
  network: string;
  cniVersion: string;
}

interface Variable {
  name: string;
  /** The commands that cannot do without it. The Go plugins demand CNI_PATH everywhere; so do we. */
  required: readonly Command[];
  verify?: (value: string) => void;
}

/** https://www.cni.dev/docs/spec/#parameters, in the order in which missing ones are listed. */
const variables: readonly Variable[] = [
  { name: "CNI_COMMAND", required: ["ADD", "CHECK", "DEL", "GC", "STATUS"] },
  { name: "CNI_CONTAINERID", required: ["ADD", "CHECK", "DEL"], verify: verifyContainerId },
  { name: "CNI_NETNS", required: ["ADD", "CHECK"] },
  { name: "CNI_IFNAME", required: ["ADD", "CHECK", "DEL"], verify: verifyInterfaceName },
  { name: "CNI_ARGS", required: [] },
  { name: "CNI_PATH", required: ["ADD", "CHECK", "DEL", "GC", "STATUS"] },
];

/** All but VERSION, which needs no config. In the spec's order. */
const verbs: readonly string[] = ["ADD", "DEL", "CHECK", "STATUS", "GC"] satisfies Command[];

/** Reads and checks the environment and the config. Throws CniError in the order that the Go skeleton has. */
export function readRequest(io: Io): Request {
  const { env } = io;
  const command = env.CNI_COMMAND ?? "";
  verifyEnvironment(command, env);
  let stdin: string;
  try {
    stdin = io.readStdin();
  } catch (error) {
    throw new CniError(ErrorCode.IoFailure, `error reading from stdin: ${messageOf(error)}`);
  }
  const config = parseNetworkConfig(stdin);
  if (!verbs.includes(command))
    throw new CniError(ErrorCode.InvalidEnvironmentVariables, `unknown CNI_COMMAND: ${command}`);
  return {
    command,
    containerId: env.CNI_CONTAINERID ?? "",
    netns: env.CNI_NETNS ?? "",
    ifName: env.CNI_IFNAME ?? "",
    args: env.CNI_ARGS ?? "",
    path: env.CNI_PATH ?? "",
    stdin,
    ...config,
  };
}

function verifyEnvironment(command: string, env: Io["env"]): void {
  const missing: string[] = [];
  for (const { name, required, verify } of variables) {
    if (!(required as readonly string[]).includes(command)) continue;
    const value = env[name];
    if (!value) missing.push(name);
    else verify?.(value);
  }
  if (missing.length > 0)
    throw new CniError(
      ErrorCode.InvalidEnvironmentVariables,
      `required env variables [${missing.join(",")}] missing`,
    );
}

/** Parses a config and checks what every plugin needs of it: `name` and `cniVersion`. Throws code 6 or 7. */
export function parseNetworkConfig(text: string): Pick<Request, "json" | "network" | "cniVersion"> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    const what = text.trim() === "" ? "no config on stdin" : messageOf(error);
    throw new CniError(ErrorCode.DecodingFailure, `error unmarshall network config: ${what}`);
  }
  if (typeof json !== "object" || json === null || Array.isArray(json))
    throw new CniError(ErrorCode.DecodingFailure, "error unmarshall network config: it is not a JSON object");
  const config = json as Record<string, unknown>;
  const network = stringKey(config, "name");
  const cniVersion = stringKey(config, "cniVersion") || implicitVersion;
  if (network === "") throw new CniError(ErrorCode.InvalidNetworkConfig, "missing network name");
  verifyNetworkName(network);
  return { json: config, network, cniVersion };
}

/** The value of a key in any case: the last in the document that is not null. */
export function valueAt(object: Record<string, unknown>, key: string): unknown {
  const folded = key.toLowerCase();
  let value: unknown;
  for (const name in object) {
    const isIt = name.length === key.length && name.toLowerCase() === folded;
    if (isIt && object[name] !== null) value = object[name];
  }
  return value;
}

/** A top-level string; "" when absent. */
function stringKey(config: Record<string, unknown>, key: string): string {
  const value = valueAt(config, key) ?? "";
  if (typeof value === "string") return value;
  const msg = `error unmarshall network config: ${key}: ${shown(value)} is not a string`;
  throw new CniError(ErrorCode.DecodingFailure, msg);
}

/** The config version from which on a command exists. */
const sinceVersion: Readonly<Record<string, string>> = { CHECK: "0.4.0", GC: "1.1.0", STATUS: "1.1.0" };

/** Throws code 1 unless this plugin can serve this command for a config of this version. */
export function verifyVersion(plugin: Plugin, command: string, cniVersion: string): void {
  const since = sinceVersion[command];
  if (since !== undefined && !atLeast(cniVersion, since))
    throw new CniError(ErrorCode.IncompatibleCniVersion, `config version does not allow ${command}`, {
      details: `${command} needs cniVersion ${since} or later, the config has "${cniVersion}"`,
    });
  if (since !== undefined && !plugin.versions.some((version) => atLeast(version, cniVersion)))
    throw new CniError(ErrorCode.IncompatibleCniVersion, `plugin version does not allow ${command}`, {
      details: incompatible(plugin, cniVersion),
    });
  if (!(plugin.versions as readonly string[]).includes(cniVersion))
    throw new CniError(ErrorCode.IncompatibleCniVersion, "incompatible CNI versions", {
      details: incompatible(plugin, cniVersion),
    });
}

const incompatible = (plugin: Plugin, cniVersion: string): string =>
  `config is "${cniVersion}", plugin supports [${plugin.versions.map((v) => `"${v}"`).join(" ")}]`;
