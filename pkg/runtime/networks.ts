import {
  confFromFile,
  confListFromConf,
  confListFromFile,
  listConfFiles,
  type NetworkConfigList,
  parseConfList,
  parsePluginConf,
} from "@tscni/libcni";
import { CniError, ErrorCode, messageOf, verifyInterfaceName, verifyNetworkName } from "@tscni/types";
import { invalidConfig, NetworkingError } from "./errors.ts";

/** A network that containers are attached to, and the interface that each gets there. */
export interface Network {
  readonly name: string;
  readonly ifName: string;
  readonly list: NetworkConfigList;
}

/**
 * Where networks come from.
 * - `"directory"`: the files of the config folder in the order of their names, at most `maxConfigs` of them; the first is
 *   the default network. `"all"`: all of them.
 * - `"loopback"`: the loopback plugin on `lo`
 * - the text or the file of a conflist, or of a single plugin, whose interface's number `index` (0) is
 */
export type NetworkSource =
  | "directory"
  | "all"
  | "loopback"
  | { readonly list: string }
  | { readonly listFile: string }
  | { readonly conf: string; readonly index?: number }
  | { readonly confFile: string; readonly index?: number };

export interface SourceOptions {
  configDir: string;
  /** Of `"directory"`; 0 is no limit. */
  maxConfigs: number;
  /** What interface names begin with. */
  prefix: string;
}

/** go-cni has 0.3.1 here, whose networks can't be checked. */
const loopback = `{"cniVersion": "0.4.0", "name": "cni-loopback", "plugins": [{"type": "loopback"}]}`;

/** The networks of the sources, in their order. All or none: throws NetworkingError when one can't be loaded. */
export function loadNetworks(sources: readonly NetworkSource[], options: SourceOptions): Network[] {
  const networks: Network[] = [];
  for (const source of sources) networks.push(...networksOf(source, options, networks.length));
  for (const [i, network] of networks.entries()) verifyNetwork(network, networks.slice(0, i));
  return networks;
}

/** What would make every ADD fail. */
function verifyNetwork({ name, ifName, list }: Network, before: readonly Network[]): void {
  const what = list.source ?? `network "${name}"`;
  try {
    verifyNetworkName(name);
    verifyInterfaceName(ifName);
  } catch (error) {
    throw invalidConfig(what, error);
  }
  const other = before.find((network) => network.ifName === ifName);
  if (other !== undefined)
    throw new NetworkingError(
      "invalid-config",
      `${what}: its interface would be ${ifName}, as that of network "${other.name}" is`,
    );
}

function networksOf(source: NetworkSource, options: SourceOptions, loaded: number): Network[] {
  const named = (list: NetworkConfigList, index: number): Network[] => [
    network(list, `${options.prefix}${index}`),
  ];
  if (source === "directory") return fromDirectory(options, options.maxConfigs);
  if (source === "all") return fromDirectory(options, 0);
  if (source === "loopback") return [network(parseConfList(loopback), "lo")];
  if ("list" in source)
    return named(
      parsed("conflist", () => parseConfList(source.list)),
      loaded,
    );
  if ("listFile" in source) return named(fromListFile(source.listFile), loaded);
  if ("confFile" in source) return named(fromConfFile(source.confFile), source.index ?? 0);
  return named(
    parsed("config", () => confListFromConf(parsePluginConf(source.conf))),
    source.index ?? 0,
  );
}

const network = (list: NetworkConfigList, ifName: string): Network => ({ name: list.name, ifName, list });

/** Interfaces are numbered from 0, whatever else is loaded: with loopback before it, the first one is eth0. */
function fromDirectory({ configDir, prefix }: SourceOptions, max: number): Network[] {
  let files: string[];
  try {
    files = listConfFiles(configDir);
  } catch (error) {
    throw new NetworkingError("read-failed", messageOf(error), { cause: error });
  }
  if (files.length === 0)
    throw new NetworkingError("not-initialized", `no network config found in ${configDir}`);
  const chosen = max > 0 ? files.slice(0, max) : files;
  return chosen.map((file, i) =>
    network(file.endsWith(".conflist") ? fromListFile(file) : fromConfFile(file), `${prefix}${i}`),
  );
}

const fromListFile = (file: string): NetworkConfigList => parsed(file, () => confListFromFile(file));

const fromConfFile = (file: string): NetworkConfigList =>
  parsed(file, () => confListFromConf(confFromFile(file)));

function parsed(what: string, parse: () => NetworkConfigList): NetworkConfigList {
  try {
    const list = parse();
    if (list.plugins.length > 0) return list;
  } catch (error) {
    if (error instanceof CniError && error.code === ErrorCode.IoFailure)
      throw new NetworkingError("read-failed", error.message, { cause: error });
    throw invalidConfig(what, error);
  }
  throw new NetworkingError("invalid-config", `${what}: it has no plugins`);
}
