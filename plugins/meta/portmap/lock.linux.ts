import { KindLock } from "@tscni/record";
import { kind } from "./publication.ts";

let held: number | undefined;

/**
 * Does work while no other process of ours changes host ports: between its look at whose a port is and its change,
 * nothing may come. The lock goes with the process, and with those that it has given it to.
 */
export function locked(work: () => void): void {
  using lock = new KindLock(kind);
  held = lock.fd;
  try {
    work();
  } finally {
    held = undefined;
  }
}

/** The lock, for a child that goes on when we are killed. */
export const heldLock = (): number | undefined => held;
