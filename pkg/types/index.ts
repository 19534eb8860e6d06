export * from "./errors.ts";
export * from "./names.ts";
export * from "./result.ts";
export * from "./version.ts";
