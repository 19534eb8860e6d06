import { type Cidr, cidrText, type Ip, ipText, parseCidr, parseIp } from "@tscni/addr";
import type { Result } from "@tscni/types";
import type { PortMapping } from "./conf.ts";

export type Protocol = "tcp" | "udp" | "sctp";

/** A host port of one IP family, and where it leads. */
export interface Mapping {
  protocol: Protocol;
  /** The one address of the host that it is for, in canonical text; absent: all of the family. */
  hostIp?: string;
  hostPort: number;
  containerPort: number;
}

/** The address of a container that ports of its family lead to. */
export interface Target {
  family: 4 | 6;
  /** The address with the length of its subnet's prefix, in canonical text. */
  address: string;
  mappings: Mapping[];
}

/** The addresses to publish ports on, each with its ports; without those that no port is for. */
export function targetsOf(
  ports: readonly PortMapping[],
  result: Result,
  ifName: string,
  warn: (message: string) => void = () => {},
): Target[] {
  return containerAddresses(result, ifName)
    .map((address) => ({
      family: address.ip.family,
      address: cidrText(address),
      mappings: mappingsOf(ports, address.ip.family, warn),
    }))
    .filter(({ mappings }) => mappings.length > 0);
}

/**
 * The first IPv4 and the first IPv6 address of the container's interface in a result. An address that belongs to no
 * interface counts as the container's: results before 0.3.0 name none.
 */
export function containerAddresses(result: Result, ifName: string): Cidr[] {
  const found: Cidr[] = [];
  for (const ip of result.ips) {
    const owner = ip.interface === undefined ? undefined : result.interfaces[ip.interface];
    if (owner !== undefined && (owner.name !== ifName || !owner.sandbox)) continue;
    const address = parseCidr(ip.address);
    if (address !== undefined && found.every((other) => other.ip.family !== address.ip.family))
      found.push(address);
  }
  return found.sort((a, b) => a.ip.family - b.ip.family);
}

/**
 * The ports of one family. Those for one address come first, so that they win over those for all addresses where
 * the first rule decides. Of two for the same port the first counts, as in the reference.
 */
export function mappingsOf(
  ports: readonly PortMapping[],
  family: 4 | 6,
  warn: (message: string) => void = () => {},
): Mapping[] {
  const found = new Map<string, Mapping>();
  for (const { protocol, hostIP, hostPort, containerPort } of ports) {
    const ip = parseIp(hostIP);
    if (ip !== undefined && ip.family !== family) continue;
    const mapping: Mapping = {
      protocol: (protocol.toLowerCase() || "tcp") as Protocol,
      ...(ip === undefined || ip.value === 0n ? {} : { hostIp: ipText(ip) }),
      hostPort,
      containerPort,
    };
    const key = keyOf(mapping);
    const earlier = found.get(key);
    if (earlier === undefined) found.set(key, mapping);
    else if (earlier.containerPort !== containerPort)
      warn(
        `host port ${portText(mapping)} is mapped twice; it leads to ${earlier.containerPort}, not to ${containerPort}`,
      );
  }
  const all = [...found.values()];
  return [...all.filter(({ hostIp }) => hostIp), ...all.filter(({ hostIp }) => !hostIp)];
}

/** What only one container may have. A port of one address and that port of all addresses are two things. */
export const keyOf = ({ protocol, hostIp = "*", hostPort }: Mapping): string =>
  `${protocol} ${hostIp} ${hostPort}`;

/** A host port as people write it: `10.0.0.1:8080/tcp`, `8080/udp`. */
export function portText({ protocol, hostIp, hostPort }: Mapping): string {
  if (hostIp === undefined) return `${hostPort}/${protocol}`;
  return `${hostIp.includes(":") ? `[${hostIp}]` : hostIp}:${hostPort}/${protocol}`;
}

/** The address of a target without the prefix. */
export const addressOf = ({ address }: Target): string => address.slice(0, address.indexOf("/"));

/** The address as a number. */
export const ipOf = (target: Target): Ip => parseIp(addressOf(target))!;
