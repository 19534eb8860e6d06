export * from "./args.ts";
export * from "./decode.ts";
export * from "./fields.ts";
export * from "./fold.ts";
export * from "./json-schema.ts";
export * from "./mac.ts";
export type { AnySchema, Infer, Schema } from "./schema.ts";
export * as v from "./schema.ts";
export * from "./unknown.ts";
