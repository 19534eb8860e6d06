import { libc } from "./libc.ts";

/** Ends the process at once: no exit handlers, nothing flushed. */
export function exitNow(status: number): never {
  libc._exit(status);
  throw new Error("unreachable");
}
