import { delimiter } from "node:path";
import { type RunResult, run } from "@tscni/exec";
import { CniError, ErrorCode } from "@tscni/types";
import { PluginError, pluginErrorOf } from "./failure.ts";

/** What a plugin is asked: the variables of https://www.cni.dev/docs/spec/#parameters */
export interface PluginCall {
  command: string;
  containerId: string;
  netns: string;
  ifName: string;
  /** CNI_ARGS: pairs, or the text itself. */
  args: string | readonly (readonly [string, string])[];
  /** CNI_PATH: folders. */
  path: readonly string[];
}

export interface InvokeOptions {
  signal?: AbortSignal;
  /** Kills the plugin after so many milliseconds; absent or 0 is no limit. */
  timeoutMs?: number;
  /** For the error's text. */
  network?: string;
  /** Variables beside the CNI_* ones, such as the context of a trace. */
  env?: Readonly<Record<string, string>>;
  /** Gets what a plugin that succeeded wrote to stderr. */
  log?: (text: string) => void;
  /** Between the runs of a plugin that is being written; default 1000, as in Go. */
  busyDelayMs?: number;
}

/** How often a plugin is run that is "text file busy", as in Go. */
const busyRuns = 6;

/** Runs a plugin and resolves to its stdout. Rejects with a PluginError when it fails. */
export async function invokePlugin(
  file: string,
  call: PluginCall,
  stdin: string,
  options: InvokeOptions = {},
): Promise<string> {
  const env = { ...callEnv(call), ...options.env };
  for (let runs = 1; ; runs++) {
    const result = await run(file, [], { stdin, env, ...stopOptions(options) });
    if (result.exitCode === 0 && result.stopped === undefined) {
      if (result.stderr !== "") options.log?.(result.stderr);
      return result.stdout;
    }
    if (result.spawnError?.code !== "ETXTBSY") throw pluginErrorOf(file, call, result, options);
    if (runs === busyRuns || options.signal?.aborted) throw busyError(file, call, result, runs, options);
    await pause(options.busyDelayMs ?? 1000, options.signal);
  }
}

/** The environment of the parent, its CNI_ variables replaced. */
export function callEnv(call: PluginCall): Record<string, string | undefined> {
  return {
    ...process.env,
    CNI_COMMAND: call.command,
    CNI_CONTAINERID: call.containerId,
    CNI_NETNS: call.netns,
    CNI_ARGS: typeof call.args === "string" ? call.args : call.args.map((pair) => pair.join("=")).join(";"),
    CNI_IFNAME: call.ifName,
    CNI_PATH: call.path.join(delimiter),
  };
}

function stopOptions(options: InvokeOptions) {
  return {
    ...(options.signal ? { signal: options.signal } : {}),
    ...(options.timeoutMs ? { timeoutMs: options.timeoutMs } : {}),
  };
}

/** Go gives up here with no output and no error; code 11 says that a later try may succeed. */
function busyError(
  file: string,
  call: PluginCall,
  result: RunResult,
  runs: number,
  options: InvokeOptions,
): CniError {
  const { facts } = pluginErrorOf(file, call, result, options);
  const msg = `text file busy: ${file} is being written, it could not be run in ${runs} tries`;
  return new PluginError(ErrorCode.TryAgainLater, msg, "", facts);
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    }
  });
}

/** Parses what a plugin printed on success. Throws CniError 6 naming the plugin and showing the text. */
export function parseStdout(
  file: string,
  call: { command: string },
  stdout: string,
  network?: string,
): unknown {
  try {
    return JSON.parse(stdout);
  } catch (error) {
    const shown = stdout.length > 500 ? `${stdout.slice(0, 500)}...` : stdout;
    const cause = stdout === "" ? "unexpected end of JSON input" : (error as Error).message;
    throw new CniError(ErrorCode.DecodingFailure, `failed to unmarshal raw result: ${cause}`, {
      details: `${file} ${call.command}${network ? ` for network "${network}"` : ""} succeeded but printed ${JSON.stringify(shown)}, which is not a result`,
      cause: error,
    });
  }
}
