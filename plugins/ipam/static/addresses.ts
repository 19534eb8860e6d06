import { type Cidr, cidrContains, type Ip, parseCidr, parseIp } from "@tscni/addr";
import { parseCniArgs } from "@tscni/conf";
import { atLeast, CniError, ErrorCode } from "@tscni/types";
import type { StaticConf } from "./conf.ts";

export interface StaticAddress {
  cidr: Cidr;
  gateway: Ip | undefined;
}

/**
 * The addresses of one attachment. `IP` of CNI_ARGS adds to those of the config and `GATEWAY` sets the gateway of
 * each whose subnet it is of; `args.cni.ips` replaces all of these, and the `ips` capability replaces that.
 */
export function addressesOf(conf: StaticConf, args: string, cniVersion: string): StaticAddress[] {
  if (conf.ipam === undefined)
    throw new CniError(ErrorCode.InvalidNetworkConfig, "IPAM config missing 'ipam' key");
  const fromArgs = fromCniArgs(conf.ipam.addresses, args);
  const [fromConfig, fromRuntime] = [conf.args?.cni?.ips ?? [], conf.runtimeConfig?.ips ?? []];
  const replacement = fromRuntime.length > 0 ? fromRuntime : fromConfig;
  const addresses = replacement.length > 0 ? replacement.map((text) => addressOf(text)) : fromArgs;
  if (!atLeast(cniVersion, "0.3.0")) verifyOneOfEach(addresses, cniVersion);
  return addresses;
}

/** Both texts are checked already. */
const addressOf = (address: string, gateway?: string): StaticAddress => ({
  cidr: parseCidr(address)!,
  gateway: gateway ? parseIp(gateway) : undefined,
});

function fromCniArgs(
  configured: readonly { address: string; gateway?: string | undefined }[],
  args: string,
): StaticAddress[] {
  const { IP = "", GATEWAY = "" } = parseCniArgs(args, ["IP", "GATEWAY"]);
  const addresses = configured.map(({ address, gateway }) => addressOf(address, gateway));
  for (const text of listOf(IP)) {
    const cidr = parseCidr(text);
    if (cidr === undefined) throw wrong(`the 'ip' field is expected to be in CIDR notation, got: '${text}'`);
    addresses.push({ cidr, gateway: undefined });
  }
  for (const text of listOf(GATEWAY)) {
    const gateway = parseIp(text);
    if (gateway === undefined) throw wrong(`invalid gateway address: ${text}`);
    for (const address of addresses) if (cidrContains(address.cidr, gateway)) address.gateway = gateway;
  }
  return addresses;
}

const listOf = (text: string): string[] => (text === "" ? [] : text.split(",").map((item) => item.trim()));

const wrong = (text: string) => new CniError(ErrorCode.InvalidEnvironmentVariables, `CNI_ARGS: ${text}`);

/** Results of these versions have room for one IPv4 and one IPv6 address. */
function verifyOneOfEach(addresses: readonly StaticAddress[], cniVersion: string): void {
  const ofFamily = (family: 4 | 6) => addresses.filter(({ cidr }) => cidr.ip.family === family).length;
  if (ofFamily(4) > 1 || ofFamily(6) > 1)
    throw new CniError(
      ErrorCode.InvalidNetworkConfig,
      `CNI version ${cniVersion} does not support more than 1 address per family`,
    );
}
