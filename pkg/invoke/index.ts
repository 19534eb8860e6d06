export * from "./failure.ts";
export * from "./find.ts";
export * from "./hints.ts";
export * from "./invoke.ts";
export * from "./versions.ts";
