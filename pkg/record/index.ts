export * from "./lock.linux.ts";
export * from "./record.linux.ts";
