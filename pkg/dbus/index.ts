export * from "./address.ts";
export * from "./bus.linux.ts";
export * from "./error.ts";
