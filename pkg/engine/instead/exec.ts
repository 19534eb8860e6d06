import type { RunOptions, RunResult } from "@tscni/exec";
import { isStartFailure, startChild } from "@tscni/sys";

/** @tscni/exec on pkg/sys. */

/** bits/signum-generic.h and bits/signum-arch.h of Linux: what a plugin may die of. */
const signals: Readonly<Record<number, string>> = {
  1: "SIGHUP",
  2: "SIGINT",
  3: "SIGQUIT",
  4: "SIGILL",
  5: "SIGTRAP",
  6: "SIGABRT",
  7: "SIGBUS",
  8: "SIGFPE",
  9: "SIGKILL",
  11: "SIGSEGV",
  13: "SIGPIPE",
  14: "SIGALRM",
  15: "SIGTERM",
};

/**
 * Runs a program to its end with all of its output; `file` is a path, not searched for. Never throws. A plugin waits
 * for its delegate and has nothing else to do meanwhile, so this blocks; it knows no `signal`.
 */
export async function run(file: string, args: readonly string[], options: RunOptions): Promise<RunResult> {
  const begin = Bun.nanoseconds();
  const result = (rest: Partial<RunResult>): RunResult => ({
    stdout: "",
    stderr: "",
    exitCode: undefined,
    signal: undefined,
    spawnError: undefined,
    stopped: undefined,
    ...rest,
    durationMs: (Bun.nanoseconds() - begin) / 1e6,
  });
  try {
    const child = startChild(file, args, { stdin: options.stdin, env: environmentOf(options) });
    const { signal, timedOut, ...ended } = child.wait(options.timeoutMs);
    return result({
      ...ended,
      signal: signal === undefined ? undefined : (signals[signal] ?? `signal ${signal}`),
      stopped: timedOut ? "timeout" : undefined,
    });
  } catch (error) {
    if (!isStartFailure(error)) throw error;
    return result({ spawnError: { code: error.code, message: error.message } });
  }
}

function environmentOf({ env }: RunOptions): string[] {
  const set = Object.entries(env).filter(([, value]) => value !== undefined);
  return set.map(([name, value]) => `${name}=${value}`);
}
