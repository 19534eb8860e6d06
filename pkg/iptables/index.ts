export * from "./backend.ts";
export * from "./edit.linux.ts";
export * from "./error.ts";
export * from "./restore.linux.ts";
export * from "./rule.ts";
export * from "./save.linux.ts";
export * from "./table.ts";
