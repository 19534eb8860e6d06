import { CniError, ErrorCode, messageOf } from "@tscni/types";
import type { JsonObject } from "./model.ts";

/** ES2025's JSON.rawJSON and the third argument of a reviver, which the compiler's library lacks; Node 22 and Bun have both. */
const json = JSON as typeof JSON & { rawJSON(text: string): unknown; isRawJSON(value: unknown): boolean };

/**
 * Parses JSON whose numbers go on to a plugin: a whole number that a double can't hold stays as it is written
 * and comes out of JSON.stringify unchanged (Go's libcni rounds it). Throws CniError 6, `what` first.
 */
export function parseJson(text: string, what: string): unknown {
  const keepDigits = (_: string, value: unknown, { source = "" }: { source?: string } = {}) =>
    typeof value === "number" && /^-?\d{16,}$/.test(source) && String(value) !== source
      ? json.rawJSON(source)
      : value;
  try {
    // The reviver costs time and stack, and only a long run of digits can need it.
    return /\d{16}/.test(text) ? JSON.parse(text, keepDigits) : JSON.parse(text);
  } catch (error) {
    throw new CniError(ErrorCode.DecodingFailure, `${what}: ${messageOf(error)}`, { cause: error });
  }
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !json.isRawJSON(value);
}

/** The value of a key in whatever case, the last one in the document if there are several; null is absent. */
export function field(object: JsonObject, key: string): unknown {
  const folded = key.toLowerCase();
  const name = Object.keys(object).findLast((k) => k.toLowerCase() === folded);
  return name === undefined ? undefined : (object[name] ?? undefined);
}

/** `object` with these keys set, and gone in any other case: Go plugins would take the last of several. */
export function withKeys(object: JsonObject, set: JsonObject): JsonObject {
  const replaced = new Set(Object.keys(set).map((key) => key.toLowerCase()));
  const rest = Object.entries(object).filter(([key]) => !replaced.has(key.toLowerCase()));
  return Object.fromEntries([...rest, ...Object.entries(set)]);
}

/** JSON as Go's encoding/json writes it: compact, with these characters escaped. Keys stay in their order. */
export function goJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A copy with the keys of every object sorted, as Go writes its maps. */
export function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, v]) => v !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([k, v]) => [k, sortKeys(v)]),
  );
}
