export * from "./builtin.ts";
export * from "./call.ts";
export * from "./io.ts";
export * from "./plugin.ts";
export * from "./request.ts";
export * from "./run.ts";
export * from "./undo.ts";
