/** An IPv4 or IPv6 address as a number, so that ranges are plain arithmetic. */
export interface Ip {
  readonly family: 4 | 6;
  readonly value: bigint;
}

export const bitsOf = (family: 4 | 6): number => (family === 4 ? 32 : 128);

/**
 * Parses dotted-quad IPv4 and RFC 4291 IPv6 text. As Go's net.ParseIP (whose files and configs we share):
 * no leading zeros in an IPv4 octet, no zone, and an IPv4-mapped IPv6 address (::ffff:a.b.c.d) is IPv4.
 * Returns undefined for anything else.
 */
export function parseIp(text: string): Ip | undefined {
  if (text.includes(":")) {
    const value = parseV6(text);
    if (value === undefined) return undefined;
    return value >> 32n === 0xffffn ? { family: 4, value: value & 0xffffffffn } : { family: 6, value };
  }
  const value = parseV4(text);
  return value === undefined ? undefined : { family: 4, value: BigInt(value) };
}

function parseV4(text: string): number | undefined {
  const parts = text.split(".");
  if (parts.length !== 4) return undefined;
  let value = 0;
  for (const part of parts) {
    if (!isDecimalOctet(part)) return undefined;
    value = value * 256 + Number(part);
  }
  return value;
}

function isDecimalOctet(part: string): boolean {
  if (part.length < 1 || part.length > 3 || (part.length > 1 && part[0] === "0")) return false;
  for (let i = 0; i < part.length; i++) if (part[i]! < "0" || part[i]! > "9") return false;
  return Number(part) < 256;
}

function parseV6(text: string): bigint | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const tail = halves.length === 2 ? halves[1]! : halves[0]!;
  const left = halves.length === 2 ? groupsOf(halves[0]!, false) : [];
  const right = groupsOf(tail, true);
  if (left === undefined || right === undefined) return undefined;
  const gap = 8 - left.length - right.length;
  if (halves.length === 2 ? gap < 1 : gap !== 0) return undefined;
  let value = 0n;
  for (const group of left) value = (value << 16n) | BigInt(group);
  value <<= BigInt(16 * gap);
  for (const group of right) value = (value << 16n) | BigInt(group);
  return value;
}

/** The 16-bit groups of one side of "::"; the last may be an embedded IPv4 address when `last`. */
function groupsOf(text: string, last: boolean): number[] | undefined {
  if (text === "") return [];
  const groups: number[] = [];
  const parts = text.split(":");
  for (const [i, part] of parts.entries()) {
    if (last && i === parts.length - 1 && part.includes(".")) {
      const v4 = parseV4(part);
      if (v4 === undefined) return undefined;
      groups.push(v4 >>> 16, v4 & 0xffff);
    } else {
      if (!isHexGroup(part)) return undefined;
      groups.push(Number.parseInt(part, 16));
    }
  }
  return groups.length > 8 ? undefined : groups;
}

/** One to four hexadecimal digits. */
function isHexGroup(part: string): boolean {
  for (let i = 0; i < part.length; i++) {
    const c = part[i]!;
    if (!((c >= "0" && c <= "9") || (c >= "a" && c <= "f") || (c >= "A" && c <= "F"))) return false;
  }
  return part !== "" && part.length <= 4;
}

/** The canonical text: dotted quad, or RFC 5952 (lower case, longest run of zero groups as "::"). */
export function ipText(ip: Ip): string {
  if (ip.family === 4) {
    const n = Number(ip.value);
    return `${n >>> 24}.${(n >>> 16) & 255}.${(n >>> 8) & 255}.${n & 255}`;
  }
  const groups: number[] = [];
  for (let shift = 112n; shift >= 0n; shift -= 16n) groups.push(Number((ip.value >> shift) & 0xffffn));
  const run = longestZeroRun(groups);
  const hex = (part: number[]) => part.map((g) => g.toString(16)).join(":");
  if (run.length < 2) return hex(groups);
  return `${hex(groups.slice(0, run.start))}::${hex(groups.slice(run.start + run.length))}`;
}

function longestZeroRun(groups: number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  for (let i = 0; i < groups.length; i++) {
    let end = i;
    while (end < groups.length && groups[end] === 0) end++;
    if (end - i > best.length) best = { start: i, length: end - i };
    if (end > i) i = end;
  }
  return best;
}

/** Network byte order, 4 or 16 bytes. */
export function ipBytes(ip: Ip): Uint8Array {
  const bytes = new Uint8Array(bitsOf(ip.family) / 8);
  let rest = ip.value;
  for (let i = bytes.length - 1; i >= 0; i--) {
    bytes[i] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  return bytes;
}

/** The address in 4 or 16 bytes of network byte order; throws RangeError for any other length. */
export function ipOfBytes(bytes: Uint8Array): Ip {
  if (bytes.length !== 4 && bytes.length !== 16)
    throw new RangeError(`an IP address has 4 or 16 bytes, not ${bytes.length}`);
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return { family: bytes.length === 4 ? 4 : 6, value };
}

/** Orders IPv4 before IPv6, then by value: negative, zero or positive as for Array.sort. */
export function compareIps(a: Ip, b: Ip): number {
  if (a.family !== b.family) return a.family - b.family;
  return a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
}

export const ipEquals = (a: Ip, b: Ip): boolean => a.family === b.family && a.value === b.value;

/** The address `offset` after this one, wrapping around at the end of its family. */
export function ipPlus(ip: Ip, offset: bigint): Ip {
  return { family: ip.family, value: BigInt.asUintN(bitsOf(ip.family), ip.value + offset) };
}
