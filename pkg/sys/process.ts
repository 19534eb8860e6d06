import { libc } from "./libc.ts";

/** Ends the process at once: no exit handlers, nothing flushed. */
export function exitNow(status: number): never {
  libc._exit(status);
  throw new Error("unreachable");
}

/** A variable of this process's environment; undefined when it is not set or empty. */
export const environmentVariable = (name: string): string | undefined => process.env[name] || undefined;

/** Does nothing for some milliseconds. */
export const sleep = (ms: number): void => Bun.sleepSync(ms);
