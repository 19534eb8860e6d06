import { exitNow, readToEnd, writeAll } from "@tscni/sys";

/** The process as the protocol sees it, injected so that all of it can be tested without one. */
export interface Io {
  env: Readonly<Record<string, string | undefined>>;
  readStdin(): string;
  /** Writes to stdout; throws when that cannot be done. */
  writeStdout(text: string): void;
  writeStderr(text: string): void;
  exit(status: number): void;
}

/** No conflist comes near this; it keeps a stray input from filling the memory of the node. */
const maxConfigBytes = 64 << 20;

/** The real process. It ends by _exit, right after the one write: there is nothing left to run or to flush. */
export const processIo: Io = {
  env: process.env,
  readStdin: () => new TextDecoder().decode(readToEnd(0, maxConfigBytes)),
  writeStdout: (text) => writeAll(1, new TextEncoder().encode(text)),
  writeStderr(text) {
    try {
      writeAll(2, new TextEncoder().encode(text));
    } catch {
      // Nobody to tell.
    }
  },
  exit: exitNow,
};
