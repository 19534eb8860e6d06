import type { Dns, Result, Route } from "@tscni/types";
import { NetworkingError } from "./errors.ts";

/** An interface that a plugin reported: in the container when it has a `sandbox`, on the host otherwise. */
export interface AttachedInterface {
  addresses: AttachedAddress[];
  mac?: string;
  sandbox?: string;
  pciID?: string;
  socketPath?: string;
  /** Bytes. */
  mtu?: number;
}

export interface AttachedAddress {
  /** CIDR: the address with the prefix length of its subnet. */
  address: string;
  gateway?: string;
}

/** What a container got from all of its networks. */
export interface SetupResult {
  /** By name. The default interface (`eth0`) is always among them; where two networks report one name, the later counts. */
  interfaces: Record<string, AttachedInterface>;
  /** One for each network, in their order; it may be empty. */
  dns: Dns[];
  routes: Route[];
  /** The plugins' results, one for each network, in their order. */
  raw: readonly Result[];
}

/**
 * Puts the results of the networks together. Addresses that name no interface go to the default one.
 * Throws `invalid-result` when one names an interface that is not there.
 */
export function setupResultOf(results: readonly Result[], defaultInterface: string): SetupResult {
  const interfaces: Record<string, AttachedInterface> = { [defaultInterface]: { addresses: [] } };
  for (const result of results) {
    for (const { name, ...about } of result.interfaces) interfaces[name] = { ...about, addresses: [] };
    for (const { interface: index, address, gateway } of result.ips) {
      const name = index === undefined ? defaultInterface : result.interfaces[index]?.name;
      if (name === undefined)
        throw new NetworkingError(
          "invalid-result",
          `invalid interface config: ${address} belongs to interface number ${index} of ${result.interfaces.length}`,
        );
      interfaces[name]!.addresses.push({ address, ...(gateway === undefined ? {} : { gateway }) });
    }
  }
  return {
    interfaces,
    dns: results.map(({ dns }) => dns),
    routes: results.flatMap(({ routes }) => routes),
    raw: results,
  };
}
