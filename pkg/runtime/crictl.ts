import type { JsonObject, PluginConfig } from "@tscni/libcni";
import type { NetworkingConfig } from "./networking.ts";
import type { AttachedInterface, SetupResult } from "./result.ts";

/*
 * Objects in the shape that go-cni's have as JSON. `crictl info` and `crictl inspectp` show them, and people's scripts
 * read them there.
 */

/** What go-cni's GetConfig returns. */
export function crictlConfig(config: NetworkingConfig): JsonObject {
  const networks = config.networks.map(({ ifName, list }) => ({
    Config: {
      Name: list.name,
      CNIVersion: list.cniVersion,
      Plugins: list.plugins.map((plugin) => ({ Network: netConfOf(plugin), Source: plugin.bytes })),
      Source: list.bytes,
    },
    IFName: ifName,
  }));
  return {
    PluginDirs: config.pluginDirs,
    PluginConfDir: config.configDir,
    PluginMaxConfNum: config.maxConfigs,
    Prefix: config.interfacePrefix,
    Networks: networks.length > 0 ? networks : null,
  };
}

/** What Go's libcni itself reads of a plugin object: https://pkg.go.dev/github.com/containernetworking/cni/pkg/types#PluginConf */
function netConfOf({ type, name, cniVersion, capabilities, ipam, raw }: PluginConfig): JsonObject {
  const { dns } = raw;
  const hasDns = typeof dns === "object" && dns !== null && Object.keys(dns).length > 0;
  return {
    ...(cniVersion === "" ? {} : { cniVersion }),
    ...(name === "" ? {} : { name }),
    type,
    ...(Object.keys(capabilities).length > 0 ? { capabilities } : {}),
    ipam: ipam?.type ? { type: ipam.type } : {},
    ...(hasDns ? { dns } : {}),
  };
}

/** What go-cni's Setup returns. */
export function crictlResult({ interfaces, dns, routes }: SetupResult): JsonObject {
  return {
    Interfaces: Object.fromEntries(
      Object.entries(interfaces).map(([name, about]) => [name, configOf(about)]),
    ),
    DNS: dns,
    Routes: routes.length > 0 ? routes : null,
  };
}

function configOf({ addresses, mac, sandbox, pciID, socketPath }: AttachedInterface): JsonObject {
  const configs = addresses.map(({ address, gateway }) => ({
    IP: address.split("/")[0],
    Gateway: gateway ?? "",
  }));
  return {
    IPConfigs: configs.length > 0 ? configs : null,
    Mac: mac ?? "",
    Sandbox: sandbox ?? "",
    PciID: pciID ?? "",
    SocketPath: socketPath ?? "",
  };
}
