export * from "./args.ts";
export * from "./decode.ts";
export * from "./fields.ts";
export * from "./fold.ts";
export * from "./unknown.ts";
