import { close, isErrno, lockExclusive, mkdirAll, O, open } from "@tscni/sys";

/**
 * A lock for looking at a kind's rules and then acting on what was seen: waits until it is ours. A child that inherits
 * `fd` (startNft) keeps it until the child has ended, even if we are killed.
 */
export class KindLock {
  readonly fd: number;

  constructor(kind: string) {
    this.fd = openLock(`/run/tscni/${kind}.lock`);
    lockExclusive(this.fd);
  }

  /** Lets go, unless a child has it still. */
  [Symbol.dispose](): void {
    close(this.fd);
  }
}

function openLock(path: string): number {
  try {
    return open(path, O.RDWR | O.CREAT, 0o600);
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
    mkdirAll(path.slice(0, path.lastIndexOf("/")), 0o700);
    return open(path, O.RDWR | O.CREAT, 0o600);
  }
}
