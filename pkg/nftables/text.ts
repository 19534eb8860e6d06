/**
 * A piece of nft's language. Only {@link nft} and the functions here make one, so whatever a statement is put together
 * from has been looked at: no text of a user's reaches nft as it came.
 */
export class NftText {
  readonly #text: string;
  constructor(text: string) {
    this.#text = text;
  }
  toString(): string {
    return this.#text;
  }
}

/** What may stand in a statement: numbers and pieces that are safe already. */
export type NftValue = NftText | number | readonly NftText[];

/**
 * A statement, its constant parts written as they are: nft`add element inet t s { ${address("10.1.0.5")} }`.
 * A list of pieces is joined by commas.
 */
export function nft(parts: TemplateStringsArray, ...values: readonly NftValue[]): NftText {
  let text = parts[0] ?? "";
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (typeof value === "number" && !Number.isSafeInteger(value))
      throw new TypeError(`${value} is not an integer`);
    text += (Array.isArray(value) ? value.join(", ") : String(value)) + parts[i + 1];
  }
  return new NftText(text);
}

/** A name of ours: of a table, chain, set or map. Letters, digits, "_", "-" and ".", a letter first. */
export function identifier(name: string): NftText {
  if (name === "" || name.length > 127)
    throw new TypeError(`"${name}" is too short or long for a name in nftables`);
  for (let i = 0; i < name.length; i++) {
    const c = name[i]!;
    const letter = (c >= "a" && c <= "z") || (c >= "A" && c <= "Z");
    const other = (c >= "0" && c <= "9") || c === "_" || c === "-" || c === ".";
    if (!letter && (i === 0 || !other))
      throw new TypeError(`${JSON.stringify(name)} is not a name in nftables`);
  }
  return new NftText(name);
}

/** An IP address or CIDR in its usual text, or a MAC address: hexadecimal digits, ".", ":" and "/". */
export function address(text: string): NftText {
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    const digit = (c >= "0" && c <= "9") || (c >= "a" && c <= "f") || (c >= "A" && c <= "F");
    if (!digit && c !== "." && c !== ":" && c !== "/")
      throw new TypeError(`${JSON.stringify(text)} is not an address`);
  }
  if (text === "") throw new TypeError("an address is empty");
  return new NftText(text);
}

/** Longest comment and interface name that nft takes, bytes. */
const maxComment = 127;

/**
 * Text in quotes, for comments. nft knows no escapes there: quotes, backslashes and control characters become "_", and
 * what is longer than 127 bytes is cut.
 */
export function quoted(text: string): NftText {
  let clean = "";
  let bytes = 0;
  for (const c of text) {
    const code = c.codePointAt(0)!;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (bytes > maxComment) break;
    clean += code < 0x20 || code === 0x7f || c === '"' || c === "\\" ? "_" : c;
  }
  return new NftText(`"${clean}"`);
}

/**
 * An interface's name as a value. Throws for one that nft could take for something else: with a quote, a backslash, a
 * control character, or "*", which nft would read as a pattern.
 */
export function interfaceName(name: string): NftText {
  const safe = String(quoted(name)) === `"${name}"`;
  if (!safe || name === "" || name.length > 15 || name.includes("*"))
    throw new TypeError(`${JSON.stringify(name)} is not an interface name that nft can have`);
  return new NftText(`"${name}"`);
}

/**
 * A condition that a config brings in nft's language, such as `ip saddr != 10.0.0.0/8`, in front of which and behind
 * which a rule goes on. Throws for one that would be more than a part of its rule: with a line break, ";", a comment,
 * a variable, or a quote or brace without its other half. Whether it is a condition is for nft to say.
 */
export function condition(text: string): NftText {
  let depth = 0;
  let quotes = 0;
  for (const c of text) {
    if (c < " " || c === "\x7f" || c === ";" || c === "#" || c === "\\" || c === "$")
      throw new TypeError(`${JSON.stringify(text)} has a ${JSON.stringify(c)}`);
    if (c === '"') quotes++;
    if (quotes % 2 === 1) continue;
    if (c === "{") depth++;
    if (c === "}" && --depth < 0) break;
  }
  if (depth !== 0 || quotes % 2 === 1)
    throw new TypeError(`${JSON.stringify(text)} has a quote or brace without its other half`);
  return new NftText(text);
}
