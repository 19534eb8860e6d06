export * from "./namespace.ts";
