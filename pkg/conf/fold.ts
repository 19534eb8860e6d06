import { shown } from "@tscni/types";
import type * as v from "valibot";

/** What we look at in a valibot schema to find the keys it declares. */
export interface Shape {
  readonly type: string;
  readonly entries?: Readonly<Record<string, Shape>>;
  readonly item?: Shape;
  readonly value?: Shape;
  readonly wrapped?: Shape;
  readonly options?: readonly Shape[];
}

export type AnySchema = v.GenericSchema<unknown, unknown>;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Gives every key the spelling that the schema declares and drops keys that are null: the Go plugins match
 * keys in any case (containerd sends `HostPort`), take the last of several spellings, and treat null as absent.
 * Keys that the schema doesn't know stay as they are. Returns a copy; the input is not changed.
 */
export function foldKeys(shape: Shape, value: unknown): unknown {
  if (shape.wrapped) return foldKeys(shape.wrapped, value);
  if (shape.options) {
    // Of the alternatives, those of the value's kind: a list is not an object's wrong value here.
    const fitting = shape.options.filter((option) => !(option.entries && Array.isArray(value)));
    return fitting.reduce((folded, option) => foldKeys(option, folded), value);
  }
  if (shape.item && Array.isArray(value)) return value.map((item) => foldKeys(shape.item!, item));
  if (shape.type === "record" && shape.value && isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([k, item]) => [k, foldKeys(shape.value!, item)]));
  }
  // valibot takes a list for an object; its text is neither, and shows in the message.
  if (shape.entries && Array.isArray(value)) return shown(value);
  if (!shape.entries || !isObject(value)) return value;
  const spelling = new Map(Object.keys(shape.entries).map((key) => [key.toLowerCase(), key]));
  const folded: [string, unknown][] = [];
  for (const [key, item] of Object.entries(value)) {
    if (item === null) continue;
    const known = spelling.get(key.toLowerCase());
    folded.push(known === undefined ? [key, item] : [known, foldKeys(shape.entries[known]!, item)]);
  }
  return Object.fromEntries(folded);
}
