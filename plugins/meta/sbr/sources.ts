import { type Cidr, type Ip, parseIp } from "@tscni/addr";
import { cidrOf } from "@tscni/ip";
import { CniError, ErrorCode, type IpConfig, type Result } from "@tscni/types";

/** An address that packets leave with, and where they go. */
export interface Source {
  /** With the prefix length of its subnet. */
  cidr: Cidr;
  gateway: Ip | undefined;
}

/** The addresses of an interface in a result; those that don't say of which they are belong to it, too. */
export const ipsOf = ({ ips, interfaces }: Result, ifName: string): IpConfig[] =>
  ips.filter(({ interface: i }) => (interfaces[i ?? -1]?.name ?? ifName) === ifName);

/**
 * An interface's addresses with their gateways: the config's, else the result's. Throws CniError when there is no
 * address.
 */
export function sourcesOf(result: Result, ifName: string, gateways: readonly string[]): Source[] {
  const ips = ipsOf(result, ifName);
  if (ips.length === 0)
    throw new CniError(ErrorCode.Internal, `No IP addresses supplied on interface: ${ifName}`);
  return ips.map(({ address, gateway }) => {
    const cidr = cidrOf(address);
    const ours = gateways.map(parseIp).find((ip) => ip?.family === cidr.ip.family);
    return { cidr, gateway: ours ?? (gateway === undefined ? undefined : parseIp(gateway)) };
  });
}
