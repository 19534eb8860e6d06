export * from "./announce.linux.ts";
export * from "./attachment.linux.ts";
export * from "./configure.linux.ts";
export * from "./forwarding.linux.ts";
export * from "./reclaim.linux.ts";
export * from "./sysctl.linux.ts";
export * from "./verify.linux.ts";
export * from "./veth.linux.ts";
