import { type Exit, ownGroup, type RunOptions, type RunResult, supervise } from "./run.ts";

export type { RunOptions, RunResult, Stop } from "./run.ts";

/** Runs a program to its end with all of its output; `file` is a path, not searched for. Never throws. */
export function run(file: string, args: readonly string[], options: RunOptions): Promise<RunResult> {
  return supervise(() => {
    const child = Bun.spawn({
      cmd: [file, ...args],
      env: options.env,
      stdin: new TextEncoder().encode(options.stdin),
      stdout: "pipe",
      stderr: "pipe",
      detached: ownGroup,
    });
    const stdout = child.stdout.getReader();
    const stderr = child.stderr.getReader();
    return {
      stdout: chunksOf(stdout),
      stderr: chunksOf(stderr),
      exited: child.exited.then(
        (exitCode): Exit =>
          child.signalCode
            ? { exitCode: undefined, signal: String(child.signalCode), spawnError: undefined }
            : { exitCode, signal: undefined, spawnError: undefined },
      ),
      kill() {
        try {
          if (ownGroup) process.kill(-child.pid, "SIGKILL");
        } catch {} // The group is gone, and with it what was to be killed.
        child.kill("SIGKILL");
      },
      close() {
        stdout.cancel().catch(() => {});
        stderr.cancel().catch(() => {});
      },
    };
  }, options);
}

async function* chunksOf(reader: {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
}): AsyncGenerator<Uint8Array> {
  for (;;) {
    const { done, value } = await reader.read();
    if (done || value === undefined) return;
    yield value;
  }
}
