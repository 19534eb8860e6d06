export * from "./error.ts";
export * from "./links.ts";
export * from "./message.ts";
export * from "./netlink.ts";
