import { Option, type Options } from "./options.ts";

/*
 * Names that a server sends end up in a container's resolv.conf: only what can be a name gets through, so that
 * nobody on the network writes lines of his own into that file.
 */

const maxName = 253;

/** Letters, digits, "-" and "_" in labels of 1 to 63, dots between them; one at the end is dropped. */
export function domainName(text: string): string | undefined {
  const name = text.endsWith(".") ? text.slice(0, -1) : text;
  if (name === "" || name.length > maxName) return undefined;
  return name.split(".").every((label) => /^[A-Za-z0-9_-]{1,63}$/.test(label)) ? name : undefined;
}

/** Option 15; servers written in C send a NUL behind it. */
export function domainOption(options: Options): string | undefined {
  const value = options.get(Option.DomainName);
  if (value === undefined) return undefined;
  const end = value.indexOf(0);
  return domainName(String.fromCharCode(...(end < 0 ? value : value.subarray(0, end))));
}

/** Option 119: names compressed as in DNS, RFC 3397. Names that make no sense are left out. */
export function searchOption(options: Options): string[] {
  const value = options.get(Option.DomainSearch);
  const names: string[] = [];
  for (let at = 0; value !== undefined && at < value.length; ) {
    const read = readName(value, at);
    if (read === undefined) break;
    const name = domainName(read.name);
    if (name !== undefined && !names.includes(name)) names.push(name);
    at = read.next;
  }
  return names;
}

/** RFC 1035 section 4.1.4. A pointer leads to an earlier place only, so that none goes round in circles. */
function readName(bytes: Uint8Array, start: number): { name: string; next: number } | undefined {
  const labels: string[] = [];
  let next: number | undefined;
  for (let at = start, limit = start; ; ) {
    const length = bytes[at];
    if (length === undefined) return undefined;
    if (length === 0) return { name: labels.join("."), next: next ?? at + 1 };
    if (length < 64) {
      if (at + 1 + length > bytes.length || labels.length > maxName) return undefined;
      labels.push(String.fromCharCode(...bytes.subarray(at + 1, at + 1 + length)));
      at += 1 + length;
      continue;
    }
    const low = bytes[at + 1];
    if (length < 0xc0 || low === undefined) return undefined;
    next ??= at + 2;
    at = ((length & 0x3f) << 8) | low;
    if (at >= limit) return undefined;
    limit = at;
  }
}
