import { close, isErrno, lockExclusive, mkdirAll, O, open } from "@tscni/sys";

const folder = "/run/tscni";

let held: number | undefined;

/**
 * Does work while no other process of ours changes host ports: between its look at whose a port is and its change,
 * nothing may come. The lock goes with the process, and with those that it has given it to.
 */
export function locked(work: () => void): void {
  const fd = openLock();
  try {
    lockExclusive(fd);
    held = fd;
    work();
  } finally {
    held = undefined;
    close(fd);
  }
}

/** The lock, for a child that goes on when we are killed. */
export const heldLock = (): number | undefined => held;

function openLock(): number {
  const path = `${folder}/portmap.lock`;
  try {
    return open(path, O.RDWR | O.CREAT, 0o600);
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
    mkdirAll(folder, 0o700);
    return open(path, O.RDWR | O.CREAT, 0o600);
  }
}
