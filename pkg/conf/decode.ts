import { CniError, ErrorCode, shown } from "@tscni/types";
import { foldedName } from "./fold.ts";
import type { Check, Infer, Schema } from "./schema.ts";

/** Something wrong in a config: where, and a sentence that names the value and what was expected. */
export interface Problem {
  /** Such as `ipam.ranges[0][0].subnet`; "" for the config as a whole. */
  path: string;
  message: string;
  /** Whether the value has the wrong JSON type (code 6), rather than a wrong value (code 7). */
  wrongType: boolean;
}

export interface DecodeOptions {
  /** Drops wrong values instead of failing, and reports each here: for DEL and GC, which need little. */
  lenient?: (problem: Problem) => void;
  /** Key paths (`ipam.dataDir`) that must be right even when lenient. */
  needs?: readonly string[];
}

/**
 * Checks a parsed config against its schema and fills in defaults. Keys match in any case, and null is absent.
 * Throws CniError 6 for a wrong type and 7 for a wrong value, naming key, value and what was expected.
 */
export function decodeConf<S extends Schema>(
  schema: S,
  json: unknown,
  options: DecodeOptions = {},
): Infer<S> {
  const decoder = new Decoder(options);
  const value = decoder.decode(schema, json, "");
  const problem = decoder.problems[0];
  if (problem !== undefined) throw problemError(problem);
  return value as Infer<S>;
}

/** Everything that is wrong with a config; empty when it is right. */
export function confProblems(schema: Schema, json: unknown): Problem[] {
  const decoder = new Decoder({});
  decoder.decode(schema, json, "");
  return decoder.problems;
}

function problemError(problem: Problem): CniError {
  const code = problem.wrongType ? ErrorCode.DecodingFailure : ErrorCode.InvalidNetworkConfig;
  return new CniError(code, problem.path === "" ? problem.message : `${problem.path}: ${problem.message}`);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** One walk over a value: decoded as far as it is right, with the problems of the rest. */
class Decoder {
  readonly problems: Problem[] = [];
  readonly #options: DecodeOptions;

  constructor(options: DecodeOptions) {
    this.#options = options;
  }

  decode(schema: Schema, value: unknown, path: string): unknown {
    const before = this.problems.length;
    const decoded = this.#decodeType(schema, value, path);
    if (schema.checks && this.problems.length === before) this.#check(schema.checks, decoded, value, path);
    return decoded;
  }

  #decodeType(schema: Schema, value: unknown, path: string): unknown {
    switch (schema.type) {
      case "unknown":
        return value;
      case "optional":
        return value === undefined || value === null
          ? schema.fallback
          : this.decode(schema.wrapped!, value, path);
      case "object":
        return isObject(value)
          ? this.#decodeObject(schema, value, path)
          : this.#wrongType(path, value, "an object");
      case "record":
        return isObject(value)
          ? this.#decodeRecord(schema, value, path)
          : this.#wrongType(path, value, "an object");
      case "array":
        return Array.isArray(value)
          ? value.map((item, i) => this.decode(schema.item!, item, `${path}[${i}]`))
          : this.#wrongType(path, value, "a list");
      case "union":
        return this.#decodeUnion(schema.options!, value, path);
      default:
        return typeof value === schema.type ? value : this.#wrongType(path, value, typeNames[schema.type]!);
    }
  }

  #decodeObject(schema: Schema, value: Record<string, unknown>, path: string): Record<string, unknown> {
    const entries = schema.entries!;
    const given = new Map<string, unknown>();
    const decoded: Record<string, unknown> = {};
    for (const key in value) {
      const name = foldedName(schema, key);
      if (name === undefined) {
        if (schema.loose && key !== "__proto__") decoded[key] = value[key];
      } else if (value[key] !== null) given.set(name, value[key]);
    }
    for (const name in entries) {
      const item = this.#decodeEntry(entries[name]!, given.get(name), path === "" ? name : `${path}.${name}`);
      if (item !== undefined) decoded[name] = item;
    }
    return decoded;
  }

  /** A wrong value of an optional key is dropped when lenient. */
  #decodeEntry(schema: Schema, value: unknown, path: string): unknown {
    const before = this.problems.length;
    const decoded = this.decode(schema, value, path);
    if (this.problems.length === before || !this.#options.lenient || schema.type !== "optional")
      return decoded;
    if (this.#isNeeded(before)) return decoded;
    for (const problem of this.problems.splice(before)) this.#options.lenient(problem);
    return schema.fallback;
  }

  #isNeeded(since: number): boolean {
    const { needs = [] } = this.#options;
    return this.problems.slice(since).some(({ path }) => needs.some((need) => isWithin(path, need)));
  }

  #decodeRecord(schema: Schema, value: Record<string, unknown>, path: string): Record<string, unknown> {
    const decoded: Record<string, unknown> = Object.create(null);
    for (const key in value) decoded[key] = this.decode(schema.item!, value[key], `${path}.${key}`);
    return decoded;
  }

  #decodeUnion(options: readonly Schema[], value: unknown, path: string): unknown {
    const before = this.problems.length;
    let first: Problem[] | undefined;
    for (const option of options) {
      const decoded = this.decode(option, value, path);
      if (this.problems.length === before) return decoded;
      const problems = this.problems.splice(before);
      first ??= problems;
    }
    this.problems.push(...(first ?? []));
    return undefined;
  }

  #check(checks: readonly Check[], decoded: unknown, value: unknown, path: string): void {
    for (const { test, message } of checks) {
      if ((test as (value: unknown) => boolean)(decoded)) continue;
      const text = typeof message === "string" ? message : (message as (value: unknown) => string)(decoded);
      this.#report({ path, message: sentence(text, value, path), wrongType: false });
      return;
    }
  }

  #wrongType(path: string, value: unknown, expected: string): undefined {
    const message = value === undefined ? "missing" : `${shown(value)} is not ${expected}`;
    this.problems.push({ path, message, wrongType: true });
  }

  /** A rule about the config as a whole has no key to drop: when lenient it is let go. */
  #report(problem: Problem): void {
    if (problem.path === "" && this.#options.lenient) this.#options.lenient(problem);
    else this.problems.push(problem);
  }
}

const typeNames: Record<string, string> = {
  string: "a string",
  number: "a number",
  boolean: "true or false",
};

/** The value and what is wrong with it; a message that does not start with a verb stands alone. */
const sentence = (message: string, value: unknown, path: string): string =>
  path !== "" && /^(is|has|must|cannot) /.test(message) ? `${shown(value)} ${message}` : message;

/** Whether a path is another one or leads further into it. */
const isWithin = (path: string, parent: string): boolean =>
  path === parent || path.startsWith(`${parent}.`) || path.startsWith(`${parent}[`);
