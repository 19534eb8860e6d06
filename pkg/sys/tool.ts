import { type ChildExit, findProgram, isStartFailure, startChild } from "./child.ts";
import { environmentVariable } from "./process.ts";

/** A system tool that could not be started. */
export interface ToolMissing {
  missing: string;
}

/** A tool that runs; `wait` gives its outcome. */
export interface RunningTool {
  wait(): ChildExit;
  [Symbol.dispose](): void;
}

/** What a tool inherits of our environment, where it is set: where iptables-legacy has its lock and its modules. */
const inherited = ["XTABLES_LOCKFILE", "XTABLES_LIBDIR"];

function environment(path: string): string[] {
  const env = ["LC_ALL=C", `PATH=${path}`];
  for (const name of inherited) {
    const value = environmentVariable(name);
    if (value !== undefined) env.push(`${name}=${value}`);
  }
  return env;
}

const standardPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * Starts a tool such as nft, found by PATH or in the usual folders, with messages in English. Says which program is
 * missing instead of throwing when there is none that can be started. `inherit`: see startChild's options.
 */
export function startTool(
  name: string,
  args: readonly string[],
  stdin: string,
  timeoutMs: number,
  inherit?: number,
): RunningTool | ToolMissing {
  const path = environmentVariable("PATH") ?? standardPath;
  const file = findProgram(name, path);
  if (file === undefined) return { missing: name };
  try {
    const child = startChild(file, args, { stdin, env: environment(path), inherit });
    return { wait: () => child.wait(timeoutMs), [Symbol.dispose]: () => child[Symbol.dispose]() };
  } catch (error) {
    if (isStartFailure(error)) return { missing: file };
    throw error;
  }
}
