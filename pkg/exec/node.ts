import { execa } from "execa";
import { type Exit, ownGroup, type RunOptions, type RunResult, spawnErrorOf, supervise } from "./run.ts";

export type { RunOptions, RunResult, Stop } from "./run.ts";

/** Runs a program to its end with all of its output; `file` is a path, not searched for. Never throws. */
export function run(file: string, args: readonly string[], options: RunOptions): Promise<RunResult> {
  return supervise(() => {
    const child = execa(file, args, {
      env: options.env as NodeJS.ProcessEnv,
      extendEnv: false,
      input: options.stdin,
      buffer: false,
      reject: false,
      encoding: "buffer",
      detached: ownGroup,
      cleanup: false,
    });
    return {
      stdout: child.stdout,
      stderr: child.stderr,
      // Not the promise of execa alone: that one waits for the pipes too, which a daemon may hold open.
      exited: new Promise<Exit>((resolve) => {
        child.once("exit", (code, signal) =>
          resolve({ exitCode: code ?? undefined, signal: signal ?? undefined, spawnError: undefined }),
        );
        child.once("error", (error) =>
          resolve({ exitCode: undefined, signal: undefined, spawnError: spawnErrorOf(error) }),
        );
        void child.then((result) => {
          if (result.exitCode === undefined && result.signal === undefined)
            resolve({
              exitCode: undefined,
              signal: undefined,
              spawnError: spawnErrorOf(result.cause ?? result),
            });
        });
      }),
      kill() {
        try {
          if (ownGroup && child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
        } catch {} // The group is gone, and with it what was to be killed.
        child.kill("SIGKILL");
      },
      close() {
        child.stdin.destroy();
        child.stdout.destroy();
        child.stderr.destroy();
      },
    };
  }, options);
}
