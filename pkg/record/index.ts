export * from "./record.linux.ts";
