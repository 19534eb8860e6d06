import type { Schema } from "./schema.ts";

const lowerCased = new WeakMap<object, Map<string, string>>();

/**
 * The key that an object's schema declares for a key in any spelling; undefined when it declares none. The Go
 * plugins match keys without regard to case, and containerd sends `HostPort`.
 */
export function foldedName(schema: Schema, key: string): string | undefined {
  const entries = schema.entries!;
  if (Object.hasOwn(entries, key)) return key;
  let names = lowerCased.get(entries);
  if (names === undefined) {
    names = new Map(Object.keys(entries).map((name) => [name.toLowerCase(), name]));
    lowerCased.set(entries, names);
  }
  return names.get(key.toLowerCase());
}

/**
 * A value with the keys of its objects spelt as the schema declares them and null keys gone, of several
 * spellings the last. What is wrong stays as it is: for those who look at a config without decoding it.
 */
export function foldKeys(schema: Schema, value: unknown): unknown {
  if (schema.wrapped) return foldKeys(schema.wrapped, value);
  if (!schema.entries || typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const folded: [string, unknown][] = [];
  for (const [key, item] of Object.entries(value)) {
    if (item === null) continue;
    const name = foldedName(schema, key);
    folded.push(name === undefined ? [key, item] : [name, foldKeys(schema.entries[name]!, item)]);
  }
  return Object.fromEntries(folded);
}
