import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

export const root = join(import.meta.dirname, "../..");

/** Where the executable that is tested lies, with its links: dist/bin, or what TSCNI_BIN says. */
// biome-ignore lint/suspicious/noUndeclaredEnvVars: turbo builds, it does not run the tests
export const bin = process.env.TSCNI_BIN ?? join(root, "dist/bin");
if (!existsSync(join(bin, "tscni"))) throw new Error(`${bin}/tscni is not there; run 'npm run build' first`);

export interface Outcome {
  /** The exit status, or the signal's name. */
  status: number | string;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  env?: Record<string, string>;
  cwd?: string;
}

/** Runs a program with nothing but `env` in its environment, and nothing on stdin; 10 s at most. */
export function run(command: readonly string[], { env = {}, cwd = "/" }: RunOptions = {}): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const [program, ...args] = command;
    const child = spawn(program!, args, { env, cwd, stdio: ["ignore", "pipe", "pipe"], timeout: 10_000 });
    const text = { stdout: "", stderr: "" };
    child.stdout.on("data", (data) => (text.stdout += data));
    child.stderr.on("data", (data) => (text.stderr += data));
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ status: code ?? String(signal), ...text }));
  });
}
