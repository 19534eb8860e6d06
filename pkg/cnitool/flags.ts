/** A flag of a command. Without `value` it is a switch. */
export interface Flag {
  name: string;
  short?: string;
  /** What stands for the value in help texts: `string`, `dir`, `duration`. */
  value?: string;
  about: string;
}

/** A command line that cannot be understood; main answers it with the command's usage. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** The flag that nobody knows, when that is what is wrong. */
  readonly unknownFlag: string | undefined;

  constructor(message: string, unknownFlag?: string) {
    super(message);
    this.unknownFlag = unknownFlag;
  }
}

/** What stood on the command line: the words that are no flags, and each flag's values in order. */
export class Parsed {
  readonly words: string[] = [];
  readonly #values = new Map<string, string[]>();

  add(flag: Flag, value: string): void {
    this.#values.set(flag.name, [...this.all(flag.name), value]);
  }

  /** Every value given for a flag that may be repeated. */
  all(name: string): string[] {
    return this.#values.get(name) ?? [];
  }

  /** The last value given; undefined when the flag is absent. */
  value(name: string): string | undefined {
    return this.all(name).at(-1);
  }

  /** Whether a switch is on. */
  on(name: string): boolean {
    return this.value(name) === "true";
  }
}

/**
 * Splits a command line as the Go tool's flag library does: flags and words in any order, `--name value`,
 * `--name=value`, `-n value`, `-nvalue`, `-n=value`, several short switches in one word, and `--` before
 * words that begin with a dash. Throws UsageError in that library's words.
 */
export function parseFlags(argv: readonly string[], flags: readonly Flag[]): Parsed {
  const parsed = new Parsed();
  const rest = [...argv];
  while (rest.length > 0) {
    const word = rest.shift()!;
    if (word === "--") {
      parsed.words.push(...rest);
      return parsed;
    }
    if (word.startsWith("--")) parseLong(word, rest, flags, parsed);
    else if (word.startsWith("-") && word !== "-") parseShort(word, rest, flags, parsed);
    else parsed.words.push(word);
  }
  return parsed;
}

/**
 * Where the command's name stands: the first word that is neither a flag nor a flag's value. -1 when there
 * is none, also when `--` comes first.
 */
export function commandIndex(argv: readonly string[], flags: readonly Flag[]): number {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i]!;
    if (word === "--") return -1;
    if (!word.startsWith("-") || word === "-") return i;
    if (flags.some((f) => f.value && (word === `--${f.name}` || word === `-${f.short}`))) i++;
  }
  return -1;
}

function parseLong(word: string, rest: string[], flags: readonly Flag[], parsed: Parsed): void {
  const equals = word.indexOf("=");
  const name = equals < 0 ? word.slice(2) : word.slice(2, equals);
  const flag = flags.find((f) => f.name === name);
  if (flag === undefined) throw new UsageError(`unknown flag: --${name}`, name);
  if (equals >= 0) parsed.add(flag, checked(flag, word.slice(equals + 1)));
  else if (!flag.value) parsed.add(flag, "true");
  else if (rest.length > 0) parsed.add(flag, rest.shift()!);
  else throw new UsageError(`flag needs an argument: --${name}`);
}

function parseShort(word: string, rest: string[], flags: readonly Flag[], parsed: Parsed): void {
  let letters = word.slice(1);
  while (letters !== "") {
    const letter = letters[0]!;
    const flag = flags.find((f) => f.short === letter);
    if (flag === undefined) throw new UsageError(`unknown shorthand flag: '${letter}' in -${letters}`);
    letters = letters.slice(1);
    if (!flag.value && !letters.startsWith("=")) {
      parsed.add(flag, "true");
      continue;
    }
    if (letters === "" && rest.length === 0)
      throw new UsageError(`flag needs an argument: '${letter}' in -${letter}`);
    const value = letters.startsWith("=") ? letters.slice(1) : letters || rest.shift()!;
    parsed.add(flag, checked(flag, value));
    return;
  }
}

/** A switch's `=value` as "true" or "false"; any other flag's value as it is. */
function checked(flag: Flag, value: string): string {
  if (flag.value) return value;
  if (/^(1|t|true)$/i.test(value)) return "true";
  if (/^(0|f|false)$/i.test(value)) return "false";
  throw new UsageError(`invalid argument "${value}" for --${flag.name}: expected true or false`);
}
