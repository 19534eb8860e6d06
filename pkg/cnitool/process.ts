import { statSync, writeSync } from "node:fs";
import type { Env } from "./context.ts";
import type { Io } from "./io.ts";

/** The effects of a real process: its stdout, stderr, working directory and signals. */
export function processIo(env: Env): Io {
  return {
    stdout: (text) => writeAll(1, text),
    stderr: (text) => writeAll(2, text),
    cwd: workingDirectory(env),
    isTerminal: () => process.stdout.isTTY === true, // costs 2 ms
    signal: interruption(),
  };
}

/**
 * Fires at the first SIGINT, SIGTERM or SIGHUP; a second one ends the process as usual. Needed because plugins
 * run in process groups of their own, which Ctrl-C does not reach.
 */
function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(name, () => controller.abort(new Error(`interrupted by ${name}`)));
  return controller.signal;
}

/**
 * Writes every byte. Synchronous, so that nothing is lost on exit; a pipe that is full and does not block is
 * waited for (EAGAIN). Throws when nobody reads the pipe any more or the disk is full.
 */
function writeAll(fd: number, text: string): void {
  let bytes = Buffer.from(text);
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(fd, bytes));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

/**
 * The working directory by the name that the shell knows it by, as Go programs have it: below a symbolic
 * link $PWD keeps the link. The container id of a relative namespace path depends on it.
 */
function workingDirectory(env: Env): string {
  const physical = process.cwd();
  const { PWD } = env;
  if (!PWD?.startsWith("/")) return physical;
  try {
    const [a, b] = [statSync(PWD), statSync(physical)];
    return a.dev === b.dev && a.ino === b.ino ? PWD : physical;
  } catch {
    return physical;
  }
}
