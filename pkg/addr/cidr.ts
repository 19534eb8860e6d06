import { bitsOf, type Ip, ipText, parseIp } from "./ip.ts";

/** An address with its prefix length: an interface's address, or a block when no host bits are set. */
export interface Cidr {
  readonly ip: Ip;
  readonly prefix: number;
}

/** Parses "10.1.0.5/24" or "fd00::5/64", host bits kept. Returns undefined for anything else. */
export function parseCidr(text: string): Cidr | undefined {
  const slash = text.indexOf("/");
  if (slash < 0) return undefined;
  const ip = parseIp(text.slice(0, slash));
  const length = text.slice(slash + 1);
  if (ip === undefined || !isPrefixLength(length)) return undefined;
  // ::ffff:a.b.c.d/120 is a /24 of IPv4, as in Go.
  const mapped = ip.family === 4 && text.slice(0, slash).includes(":");
  const prefix = Number(length) - (mapped ? 96 : 0);
  return prefix < 0 || prefix > bitsOf(ip.family) ? undefined : { ip, prefix };
}

/** One to three digits without a leading zero. */
function isPrefixLength(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text[i]! < "0" || text[i]! > "9") return false;
  return text !== "" && text.length <= 3 && (text === "0" || text[0] !== "0");
}

export const cidrText = (cidr: Cidr): string => `${ipText(cidr.ip)}/${cidr.prefix}`;

const hostBits = (cidr: Cidr): bigint => BigInt(bitsOf(cidr.ip.family) - cidr.prefix);

/** The block an address lies in: 10.1.0.5/24 -> 10.1.0.0/24. */
export function networkOf(cidr: Cidr): Cidr {
  const bits = hostBits(cidr);
  return { ip: { family: cidr.ip.family, value: (cidr.ip.value >> bits) << bits }, prefix: cidr.prefix };
}

/** The last address of the block, all host bits set (IPv4: the broadcast address). */
export function lastIpOf(cidr: Cidr): Ip {
  const bits = hostBits(cidr);
  return { family: cidr.ip.family, value: cidr.ip.value | ((1n << bits) - 1n) };
}

export function cidrContains(cidr: Cidr, ip: Ip): boolean {
  const bits = hostBits(cidr);
  return cidr.ip.family === ip.family && cidr.ip.value >> bits === ip.value >> bits;
}

/** Whether two blocks share an address. */
export function cidrsOverlap(a: Cidr, b: Cidr): boolean {
  return cidrContains(a, networkOf(b).ip) || cidrContains(b, networkOf(a).ip);
}

/** The prefix as a netmask in text: 24 -> 255.255.255.0. */
export function maskText(family: 4 | 6, prefix: number): string {
  const bits = bitsOf(family);
  return ipText({ family, value: ((1n << BigInt(prefix)) - 1n) << BigInt(bits - prefix) });
}

/** The default route's destination: 0.0.0.0/0 or ::/0. */
export const defaultCidr = (family: 4 | 6): Cidr => ({ ip: { family, value: 0n }, prefix: 0 });
