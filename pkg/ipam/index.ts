export * from "./builtin.ts";
export * from "./delegate.ts";
export * from "./lease.ts";
