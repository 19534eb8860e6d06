import { isRegularFile, statIfPresent } from "@tscni/sys";
import { CniError, decodeResult, ErrorCode, type Result } from "@tscni/types";
import { builtinOf, isOwnType, standsFor } from "./builtin.ts";

/** What a plugin hands on to the plugin that it delegates to: the same call. */
export interface DelegateCall {
  readonly network: string;
  readonly cniVersion: string;
  readonly containerId: string;
  readonly netns: string;
  readonly ifName: string;
  readonly args: string;
  readonly path: string;
  readonly stdin: string;
  warn(message: string): void;
}

/**
 * Runs another plugin with the same parameters and config, another command at the most. Its type is looked up
 * in CNI_PATH (https://www.cni.dev/docs/spec/#section-4-plugin-delegation); where the file found is this
 * very executable, its plugin is called as a function, which saves a process. Throws what the delegate reports.
 */
export async function delegate(
  type: string,
  command: string,
  call: DelegateCall,
): Promise<Result | undefined> {
  // Every plugin of a longer circle is started under its own name, so that this ends those, too.
  if (isOwnType(type))
    throw new CniError(
      ErrorCode.InvalidNetworkConfig,
      `type: "${type}" is this plugin itself, not one to delegate to`,
    );
  const builtin = builtinOf(type);
  if (builtin && standsFor(firstMatch(type, call.path))) return builtin(command, call);
  return runForeign(type, command, call);
}

/** The first folder of the path that holds a file of this name decides, as for everyone who looks it up. */
function firstMatch(type: string, path: string): string | undefined {
  for (const folder of path.split(":")) {
    const file = `${folder}/${type}`;
    const found = folder === "" ? undefined : statIfPresent(file);
    if (found && isRegularFile(found)) return file;
  }
  return undefined;
}

/** Whether a file is the one that this process runs. */
export function isThisExecutable(file: string | undefined): boolean {
  if (file === undefined) return false;
  const [a, b] = [statIfPresent(file), statIfPresent("/proc/self/exe")];
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
}

async function runForeign(type: string, command: string, call: DelegateCall): Promise<Result | undefined> {
  // Loaded only here: what starts processes costs more than most plugins take.
  const { findPlugin, invokePlugin } = require("@tscni/invoke") as typeof import("@tscni/invoke");
  const { containerId, netns, ifName, args } = call;
  const path = call.path.split(":");
  const file = findPlugin(type, path);
  const stdout = await invokePlugin(file, { command, containerId, netns, ifName, args, path }, call.stdin);
  return command === "ADD" ? decodeResult(JSON.parse(stdout || "null"), call.cniVersion) : undefined;
}
