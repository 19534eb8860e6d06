import { close, isErrno, lockExclusive, mkdirAll, O, open } from "@tscni/sys";

const path = "/run/tscni/masquerade.lock";

/**
 * A lock on our nftables table, for looking at an element's owner and then acting on what was seen. It goes to nft with
 * the transaction (startNft) and lasts until nft has ended, even if we are killed.
 */
export class TableLock {
  readonly fd: number;

  constructor() {
    this.fd = openLock();
    lockExclusive(this.fd);
  }

  /** Lets go, unless a child has it still. */
  [Symbol.dispose](): void {
    close(this.fd);
  }
}

function openLock(): number {
  try {
    return open(path, O.RDWR | O.CREAT, 0o600);
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
    mkdirAll("/run/tscni", 0o700);
    return open(path, O.RDWR | O.CREAT, 0o600);
  }
}
