export * from "./child.ts";
export * from "./errno.ts";
export * from "./files.ts";
export * from "./hash.ts";
export * from "./namespaces.ts";
export * from "./process.ts";
export * from "./sockets.ts";
export * from "./tool.ts";
