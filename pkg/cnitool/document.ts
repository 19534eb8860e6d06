/** A place in a text, both counted from 1; the column in UTF-16 units. */
export interface Place {
  line: number;
  column: number;
}

/** Text that is not JSON, with the place where that shows. */
export class SyntaxProblem extends Error {
  readonly place: Place;
  constructor(message: string, place: Place) {
    super(message);
    this.place = place;
  }
}

/** A key that stands twice in one object, also when only its case differs: the last one wins. */
export interface Repeated {
  path: string;
  key: string;
  place: Place;
}

/** A JSON text with the place of every value, by its path (`plugins[0].ipam.subnet`). */
export interface Document {
  value: unknown;
  repeated: Repeated[];
  /** Where the value of this path stands, or else the nearest object around it. */
  placeOf(path: string): Place;
}

const maxDepth = 200;

/** The path of a key or an index below another path. */
export function pathOf(parent: string, key: string | number): string {
  if (typeof key === "number") return `${parent}[${key}]`;
  return parent === "" ? key : `${parent}.${key}`;
}

/**
 * Parses JSON as JSON.parse does, and remembers where everything stands. Its own parser, because the
 * messages of JSON.parse differ between engines and none tells the line. Throws SyntaxProblem.
 */
export function parseDocument(text: string): Document {
  const lines = new Lines(text);
  const parser = new Parser(text, lines);
  const value = parser.document();
  const places = parser.places;
  return {
    value,
    repeated: parser.repeated,
    placeOf(path) {
      for (let p = path; p !== ""; p = parentOf(p)) {
        const at = places.get(p);
        if (at !== undefined) return lines.placeAt(at);
      }
      return lines.placeAt(places.get("") ?? 0);
    },
  };
}

function parentOf(path: string): string {
  const cut = Math.max(path.lastIndexOf("["), path.lastIndexOf("."));
  return cut < 0 ? "" : path.slice(0, cut);
}

/** Where the lines of a text begin. */
class Lines {
  readonly #starts = [0];

  constructor(text: string) {
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) this.#starts.push(at + 1);
  }

  placeAt(offset: number): Place {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.#starts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - this.#starts[low]! + 1 };
  }
}

/** Whether an odd number of backslashes stands before the quote. */
function isEscaped(text: string, quote: number): boolean {
  let first = quote;
  while (text[first - 1] === "\\") first--;
  return (quote - first) % 2 === 1;
}

/** What stands there, so that it can be seen also when it is a mark that no editor shows. */
function seenAt(text: string, offset: number): string {
  const found = text.codePointAt(offset);
  if (found === undefined) return "the end of the file";
  const char = String.fromCodePoint(found);
  if (!/[ -~]/.test(char)) return `U+${found.toString(16).toUpperCase().padStart(4, "0")}`;
  return /[/#]/.test(char) ? `${JSON.stringify(char)} (JSON has no comments)` : JSON.stringify(char);
}

class Parser {
  readonly places = new Map<string, number>();
  readonly repeated: Repeated[] = [];
  readonly #text: string;
  readonly #lines: Lines;
  #at = 0;

  constructor(text: string, lines: Lines) {
    this.#text = text;
    this.#lines = lines;
  }

  document(): unknown {
    const value = this.#value("", 0, this.#space());
    this.#space();
    if (this.#at < this.#text.length) this.#fail("expected nothing more after the closing bracket");
    return value;
  }

  /** A value, and that it stands at `place`: that of its key, if it has one. */
  #value(path: string, depth: number, place: number): unknown {
    this.#space();
    if (depth > maxDepth) this.#fail(`more than ${maxDepth} levels deep`);
    this.places.set(path, place);
    const next = this.#text[this.#at];
    if (next === "{") return this.#object(path, depth);
    if (next === "[") return this.#list(path, depth);
    if (next === '"') return this.#string();
    const word = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y;
    const match = this.#match(word);
    if (match === undefined) return this.#fail("expected a value");
    return JSON.parse(match);
  }

  #object(path: string, depth: number): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    const seen = new Map<string, string>();
    this.#at++;
    if (this.#takes("}")) return object;
    do {
      this.#space();
      const at = this.#at;
      if (this.#text[at] !== '"') this.#fail("expected a key in double quotes");
      const key = this.#string();
      const child = pathOf(path, key);
      if (seen.has(key.toLowerCase()))
        this.repeated.push({ path: child, key, place: this.#lines.placeAt(at) });
      seen.set(key.toLowerCase(), key);
      if (!this.#takes(":")) this.#fail(`expected ":" after the key ${JSON.stringify(key)}`);
      const value = this.#value(child, depth + 1, at);
      // Not by assignment, which for "__proto__" would set the prototype instead of a key.
      Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
    } while (this.#takes(","));
    if (!this.#takes("}")) this.#fail('expected "," or "}"');
    return object;
  }

  #list(path: string, depth: number): unknown[] {
    const list: unknown[] = [];
    this.#at++;
    if (this.#takes("]")) return list;
    do list.push(this.#value(pathOf(path, list.length), depth + 1, this.#space()));
    while (this.#takes(","));
    if (!this.#takes("]")) this.#fail('expected "," or "]"');
    return list;
  }

  #string(): string {
    const start = this.#at;
    let end = start;
    do end = this.#text.indexOf('"', end + 1);
    while (end > 0 && isEscaped(this.#text, end));
    if (end < 0) return this.#fail("a string without an end");
    try {
      const value = JSON.parse(this.#text.slice(start, end + 1)) as string;
      this.#at = end + 1;
      return value;
    } catch {
      return this.#fail("a string with a bad escape or a line break");
    }
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text)?.[0];
    this.#at += match?.length ?? 0;
    return match;
  }

  #takes(char: string): boolean {
    this.#space();
    if (this.#text[this.#at] !== char) return false;
    this.#at++;
    return true;
  }

  /** Passes over white space; returns where that ends. */
  #space(): number {
    this.#match(/[ \t\r\n]*/y);
    return this.#at;
  }

  #fail(expected: string): never {
    const seen = seenAt(this.#text, this.#at);
    throw new SyntaxProblem(`${expected}, found ${seen}`, this.#lines.placeAt(this.#at));
  }
}
