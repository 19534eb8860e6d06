/*
 * Declaring what a config may hold. Schemas are plain data, so that declaring one costs next to nothing when a
 * plugin starts (docs/decisions/0007): decode.ts checks by them, unknown.ts and json-schema.ts read them.
 */

/** A rule beyond the type. A message completes the sentence that the value begins: `1.5` + " is not …". */
export interface Check<T = never> {
  readonly test: (value: T) => boolean;
  readonly message: string | ((value: T) => string);
  /** The same rule in JSON Schema's words, where it has them. */
  readonly keywords?: Readonly<Record<string, unknown>>;
}

/** What a value may be; `T` is what decoding makes of it. */
export interface Schema<T = unknown> {
  readonly type:
    | "string"
    | "number"
    | "boolean"
    | "unknown"
    | "object"
    | "array"
    | "record"
    | "union"
    | "optional";
  /** object: its keys. */
  readonly entries?: Readonly<Record<string, Schema>>;
  /** object: whether other keys stay. */
  readonly loose?: boolean;
  /** array, record: what each element is. */
  readonly item?: Schema;
  /** union: the alternatives, in the order in which they are tried. */
  readonly options?: readonly Schema[];
  /** optional: what it is when present, and what stands for it when absent. */
  readonly wrapped?: Schema;
  readonly fallback?: unknown;
  readonly checks?: readonly Check[];
  /** Carries T; never there. */
  readonly output?: T;
}

/** A schema of any type. */
export type AnySchema = Schema<unknown>;

/** What decoding by a schema gives. */
export type Infer<S> = S extends Schema<infer T> ? T : never;

/** Marks keys that may be missing from the decoded object. */
export interface Omittable {
  readonly omittable: true;
}

type Entries = Readonly<Record<string, Schema>>;
type ObjectOf<E extends Entries> = {
  [K in keyof E as E[K] extends Omittable ? never : K]: Infer<E[K]>;
} & { [K in keyof E as E[K] extends Omittable ? K : never]?: Infer<E[K]> | undefined };

export const string = (): Schema<string> => ({ type: "string" });
export const number = (): Schema<number> => ({ type: "number" });
export const boolean = (): Schema<boolean> => ({ type: "boolean" });
/** Anything at all. */
export const unknown = (): Schema<unknown> => ({ type: "unknown" });

/** An object of these keys, whatever their case; others are dropped. */
export const object = <const E extends Entries>(entries: E): Schema<ObjectOf<E>> => ({
  type: "object",
  entries,
});

/** An object of these keys and any others, which stay as they are. */
export const looseObject = <const E extends Entries>(
  entries: E,
): Schema<ObjectOf<E> & { [key: string]: unknown }> => ({ type: "object", entries, loose: true });

export const array = <T>(item: Schema<T>): Schema<T[]> => ({ type: "array", item });

/** An object as a map from any key. */
export const record = <T>(item: Schema<T>): Schema<Record<string, T>> => ({ type: "record", item });

/** The first of the alternatives that fits. */
export const union = <const S extends readonly Schema[]>(options: S): Schema<Infer<S[number]>> => ({
  type: "union",
  options,
});

/** A key that may be absent or null; with a fallback, that is what it then is. */
export function optional<T>(wrapped: Schema<T>): Schema<T> & Omittable;
export function optional<T>(wrapped: Schema<T>, fallback: NoInfer<T>): Schema<T>;
export function optional(wrapped: Schema, fallback?: unknown): Schema {
  return { type: "optional", wrapped, fallback };
}

/** The schema with a rule added. */
export const check = <T>(
  schema: Schema<T>,
  test: (value: NoInfer<T>) => boolean,
  message: Check<T>["message"],
  keywords?: Check["keywords"],
): Schema<T> => ({
  ...schema,
  checks: [...(schema.checks ?? []), { test, message, ...(keywords ? { keywords } : {}) } as Check],
});
