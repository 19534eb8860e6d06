/** An IPv4 address as packets have it: a number from 0 to 2^32-1, in network byte order. */
export type Ipv4 = number;

export const broadcastIp: Ipv4 = 0xffffffff;

export const ipv4Text = (ip: Ipv4): string =>
  `${ip >>> 24}.${(ip >>> 16) & 255}.${(ip >>> 8) & 255}.${ip & 255}`;

export const ipv4Bytes = (ip: Ipv4): Uint8Array =>
  Uint8Array.of(ip >>> 24, (ip >>> 16) & 255, (ip >>> 8) & 255, ip & 255);

/** The address at a place in a packet. Throws RangeError beyond its end. */
export function ipv4At(bytes: Uint8Array, at: number): Ipv4 {
  if (at + 4 > bytes.length) throw new RangeError("beyond the end");
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);
}

/** Whether a host can have it: neither of "this network", nor loopback, multicast, reserved or broadcast. */
export function isHostAddress(ip: Ipv4): boolean {
  const first = ip >>> 24;
  return first !== 0 && first !== 127 && first < 224;
}

/** The prefix length of a netmask; undefined for one with holes. */
export function prefixOfMask(mask: Ipv4): number | undefined {
  const prefix = Math.clz32(~mask);
  return maskOf(prefix) === mask ? prefix : undefined;
}

export const maskOf = (prefix: number): Ipv4 => (prefix === 0 ? 0 : (-1 << (32 - prefix)) >>> 0);
