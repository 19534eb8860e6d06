import { join } from "node:path";
import { type Plugin, runPlugin as serve } from "@tscni/skel";
import { distBin } from "./paths.ts";

export interface PluginRun {
  /** A plugin's name, found in dist/bin, or the path of an executable. */
  bin: string;
  args?: readonly string[];
  /** Its whole environment, beside PATH and CNI_PATH, which have defaults. Undefined leaves a variable out. */
  env: Record<string, string | undefined>;
  /** The config: an object is sent as JSON, text and bytes as they are. */
  stdin?: object | string | Uint8Array;
}

export interface PluginOutcome {
  status: number | null;
  /** The signal that ended it, if one did. */
  signal: string | number | null;
  stdout: string;
  stderr: string;
  /** stdout parsed; undefined when it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it as they please
  json: any;
  /** From start to end, milliseconds. */
  ms: number;
}

/** Runs a plugin as a runtime does: its own process, no shell. Killed after 30 s. */
export async function runPlugin({ bin, args = [], env, stdin = "" }: PluginRun): Promise<PluginOutcome> {
  const start = performance.now();
  const child = Bun.spawn([bin.includes("/") ? bin : join(distBin, bin), ...args], {
    env: withoutUndefined({ PATH: process.env.PATH, CNI_PATH: distBin, ...env }),
    stdin: bytesOf(stdin),
    stdout: "pipe",
    stderr: "pipe",
    timeout: 30_000,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  const ms = performance.now() - start;
  return {
    status: child.exitCode,
    signal: child.signalCode,
    stdout,
    stderr,
    json: parsed(stdout),
    ms,
  };
}

/**
 * Runs a plugin within the test's own process, without a build: the same protocol, a process only pretended.
 * For tests of a plugin's work on the kernel; what the process itself does takes `runPlugin`.
 */
export async function runInProcess(
  plugin: Plugin,
  { env, stdin = "" }: Pick<PluginRun, "env" | "stdin">,
): Promise<PluginOutcome> {
  const start = performance.now();
  let [stdout, stderr] = ["", ""];
  let status: number | null = null;
  await serve(plugin, {
    env: { CNI_PATH: distBin, ...env },
    readStdin: () => new TextDecoder().decode(bytesOf(stdin)),
    writeStdout: (text) => {
      stdout += text;
    },
    writeStderr: (text) => {
      stderr += text;
    },
    exit: (code) => {
      status ??= code;
    },
  });
  return { status, signal: null, stdout, stderr, json: parsed(stdout), ms: performance.now() - start };
}

function bytesOf(stdin: object | string | Uint8Array): Uint8Array {
  if (stdin instanceof Uint8Array) return stdin;
  return new TextEncoder().encode(typeof stdin === "string" ? stdin : JSON.stringify(stdin));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const withoutUndefined = (env: Record<string, string | undefined>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
