import { CniError, ErrorCode, shown } from "@tscni/types";
import * as v from "valibot";
import { type AnySchema, foldKeys, type Shape } from "./fold.ts";

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
 * Checks a parsed config against its schema and fills in defaults. Throws CniError 6 for a wrong type and 7
 * for a wrong value, naming key, value and what was expected.
 */
export function decodeConf<S extends AnySchema>(
  schema: S,
  json: unknown,
  options: DecodeOptions = {},
): v.InferOutput<S> {
  const value = foldKeys(schema as unknown as Shape, json);
  let result = v.safeParse(schema, value);
  while (!result.success && options.lenient && isObject(value)) {
    const issues = result.issues.filter((issue) => keysOf(issue).length > 0);
    if (issues.length === 0) {
      if (!result.typed) break;
      // Every key is right, but they don't go together.
      for (const issue of result.issues) options.lenient(problemOf(issue));
      return result.output;
    }
    dropWrong(value, issues, options.lenient, options.needs ?? []);
    result = v.safeParse(schema, value);
  }
  if (!result.success) throw problemError(problemOf(result.issues[0]));
  return result.output;
}

/** Removes what the issues are about and reports it. Throws when that is needed, or is the whole config. */
function dropWrong(
  value: Record<string, unknown>,
  issues: readonly v.BaseIssue<unknown>[],
  report: (problem: Problem) => void,
  needs: readonly string[],
): void {
  const dropped: string[] = [];
  for (const issue of issues) {
    const problem = problemOf(issue);
    const isIn = (parent: string) => isWithin(problem.path, parent);
    if (needs.some(isIn)) throw problemError(problem);
    if (!dropped.some(isIn)) {
      const path = dropKey(value, keysOf(issue));
      if (path === undefined) throw problemError(problem);
      dropped.push(path);
    }
    report(problem);
  }
}

/** Everything that is wrong with a config; empty when it is right. */
export function confProblems(schema: AnySchema, json: unknown): Problem[] {
  const result = v.safeParse(schema, foldKeys(schema as unknown as Shape, json));
  return result.success ? [] : result.issues.map(problemOf);
}

function problemError(problem: Problem): CniError {
  const code = problem.wrongType ? ErrorCode.DecodingFailure : ErrorCode.InvalidNetworkConfig;
  return new CniError(code, problem.path === "" ? problem.message : `${problem.path}: ${problem.message}`);
}

type Key = string | number;

const keysOf = (issue: v.BaseIssue<unknown>): Key[] => (issue.path ?? []).map((item) => item.key as Key);

function pathText(keys: readonly Key[]): string {
  return keys.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : text === "" ? key : `${text}.${key}`),
    "",
  );
}

function problemOf(issue: v.BaseIssue<unknown>): Problem {
  const wrongType = issue.kind === "schema";
  return { path: pathText(keysOf(issue)), message: sentence(issue), wrongType };
}

const typeNames: Record<string, string> = {
  string: "a string",
  number: "a number",
  boolean: "true or false",
  Object: "an object",
  Array: "a list",
};

/**
 * The value and what is wrong with it. A message of our own that does not start with a verb, or
 * is about the whole config, stands alone.
 */
function sentence(issue: v.BaseIssue<unknown>): string {
  const value = shown(issue.input);
  if (issue.kind === "schema") {
    if (issue.input === undefined) return "missing";
    const expected = issue.expected ?? "something else";
    return `${value} is not ${typeNames[expected] ?? `one of ${expected}`}`;
  }
  const alone = keysOf(issue).length === 0 || !/^(is|has|must|cannot) /.test(issue.message);
  return alone ? issue.message : `${value} ${issue.message}`;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

/** Whether a path is another one or leads further into it. */
const isWithin = (path: string, parent: string): boolean =>
  path === parent || path.startsWith(`${parent}.`) || path.startsWith(`${parent}[`);

/**
 * Removes the wrong value: its own key, or the key of the list that holds it, or, when it is missing, what lacks
 * it. Returns the path of what went; undefined when that would be everything.
 */
function dropKey(root: Record<string, unknown>, keys: readonly Key[]): string | undefined {
  const end = keys.findIndex((key) => typeof key === "number");
  const path = end < 0 ? keys : keys.slice(0, end);
  for (let length = path.length; length > 0; length--) {
    const holder = path
      .slice(0, length - 1)
      .reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), root);
    const last = path[length - 1]!;
    if (!isObject(holder) || !Object.hasOwn(holder, last)) continue;
    delete holder[last];
    return pathText(path.slice(0, length));
  }
  return undefined;
}
