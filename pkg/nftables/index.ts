export * from "./error.ts";
export * from "./list.linux.ts";
export * from "./run.linux.ts";
export * from "./text.ts";
