export * from "./command.ts";
export * from "./go.ts";
export * from "./host-state.ts";
export * from "./namespace.ts";
export * from "./node.ts";
export * from "./paths.ts";
export * from "./plugin.ts";
export * from "./router.ts";
