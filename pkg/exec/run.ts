/** What a run was ended by before the child was done: its time limit, the caller's signal, or endless output. */
export type Stop = "timeout" | "aborted" | "output";

export interface RunOptions {
  /** All that the child reads; a child that exits without reading it is fine. */
  stdin: string;
  /** The whole environment; nothing is inherited beside it. */
  env: Record<string, string | undefined>;
  signal?: AbortSignal;
  /** Kills the child and its process group after so many milliseconds; absent or 0 is no limit. */
  timeoutMs?: number;
  /** Most bytes of stdout, and of stderr, before the child is killed. Default 16 MiB. */
  maxOutputBytes?: number;
}

export interface RunResult {
  stdout: string;
  stderr: string;
  /** Undefined when a signal ended the child or it never started. */
  exitCode: number | undefined;
  /** The signal's name, such as SIGKILL. */
  signal: string | undefined;
  /** Why the child could not be started; `code` is an errno name such as ENOENT. */
  spawnError: { code: string; message: string } | undefined;
  stopped: Stop | undefined;
  durationMs: number;
}

/** A started child, as both runtimes can show it. */
export interface Child {
  stdout: AsyncIterable<Uint8Array>;
  stderr: AsyncIterable<Uint8Array>;
  exited: Promise<Exit>;
  /** Kills the child and everything in its process group at once. */
  kill(): void;
  /** Gives up the output, so that nothing keeps the event loop alive. */
  close(): void;
}

export type Exit = Pick<RunResult, "exitCode" | "signal" | "spawnError">;

/** A child that has a process group of its own can be killed with all that it started. Windows has no such groups. */
export const ownGroup = process.platform !== "win32";

const defaultMaxOutputBytes = 16 * 1024 * 1024;

/** How long output may still come after the child is gone: a daemon that it left behind may hold the pipe for ever. */
const drainMs = 1000;

/** Starts a child and sees it to its end. Never throws: whatever goes wrong is in the result. */
export async function supervise(start: () => Child, options: RunOptions): Promise<RunResult> {
  const begin = performance.now();
  const done = (exit: Exit, stdout = "", stderr = "", stopped?: Stop): RunResult => ({
    ...exit,
    stdout,
    stderr,
    stopped,
    durationMs: performance.now() - begin,
  });
  const neverStarted = { exitCode: undefined, signal: undefined, spawnError: undefined };
  if (options.signal?.aborted) return done(neverStarted, "", "", "aborted");
  let child: Child;
  try {
    child = start();
  } catch (error) {
    return done({ ...neverStarted, spawnError: spawnErrorOf(error) });
  }

  let stopped: Stop | undefined;
  const stop = (reason: Stop) => {
    stopped ??= reason;
    child.kill();
  };
  const onAbort = () => stop("aborted");
  options.signal?.addEventListener("abort", onAbort, { once: true });
  const timer = options.timeoutMs ? setTimeout(() => stop("timeout"), options.timeoutMs) : undefined;
  const max = options.maxOutputBytes ?? defaultMaxOutputBytes;
  const stdout = collect(child.stdout, max, () => stop("output"));
  const stderr = collect(child.stderr, max, () => stop("output"));
  try {
    const exit = await child.exited;
    await Promise.race([Promise.all([stdout.ended, stderr.ended]), later(drainMs)]);
    return done(exit, stdout.text(), stderr.text(), stopped);
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", onAbort);
    child.close();
  }
}

/** The errno name and text of a failed start. */
export function spawnErrorOf(error: unknown): { code: string; message: string } {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return { code: typeof code === "string" ? code : "UNKNOWN", message: String(message ?? error) };
}

function collect(stream: AsyncIterable<Uint8Array>, max: number, overflow: () => void) {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const read = async () => {
    for await (const chunk of stream) {
      size += chunk.length;
      if (size > max) return overflow();
      chunks.push(chunk);
    }
  };
  // A stream that breaks off (a killed child, a closed pipe) has said what it had to say.
  return { ended: read().catch(() => {}), text: () => Buffer.concat(chunks).toString("utf8") };
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
