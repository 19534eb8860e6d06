import {
  findPlugin,
  invokePlugin,
  type PluginCall,
  pluginErrorOf,
  pluginVersions,
  type VersionInfo,
} from "@tscni/invoke";
import { setBuiltins } from "@tscni/ipam";
import type { Exec } from "@tscni/libcni";
import { builtin, type Io, type Plugin, runPlugin } from "@tscni/skel";
import { currentVersion } from "@tscni/types";

/**
 * Runs plugins of tscni as functions of this process, on Bun and with the rights that plugins need; others as processes. A
 * call does what the executable does, down to the text on stdout and the errors, without being started.
 *
 * A plugin works in one go and waits for the kernel while it does: the program stands still for so long, 1 to 3 ms for an
 * ADD of bridge and host-local, some tens for a DEL. Calls come one after the other. Neither an AbortSignal nor a time limit
 * ends one that has begun.
 *
 * @param plugins what the packages `@tscni/plugin-*` export
 * @param others how the rest is found and run
 */
export function inProcess(
  plugins: readonly Plugin[],
  others: Exec = { find: findPlugin, run: invokePlugin, versions: pluginVersions },
): Exec {
  const own = new Map(plugins.map((plugin) => [plugin.name, plugin]));
  // A plugin that delegates (bridge to host-local) gets ours, too.
  setBuiltins(
    (type) => (own.has(type) ? builtin(() => own.get(type)!) : undefined),
    () => true,
  );
  let last: Promise<unknown> = Promise.resolve();

  return {
    find: (type, paths) => (own.has(type) ? `${marker}${type}` : others.find(type, paths)),
    run(file, call, stdin, options) {
      const plugin = own.get(nameIn(file));
      if (plugin === undefined) return others.run(file, call, stdin, options);
      const turn = last.then(() => {
        options.signal?.throwIfAborted();
        return runHere(plugin, file, call, stdin, options);
      });
      last = turn.catch(() => {});
      return turn;
    },
    async versions(file, options): Promise<VersionInfo> {
      const plugin = own.get(nameIn(file));
      if (plugin === undefined) return others.versions(file, options);
      return { cniVersion: currentVersion, supportedVersions: [...plugin.versions] };
    },
  };
}

/** What stands for the file of a plugin of ours. */
const marker = "in-process:";
const nameIn = (file: string): string => (file.startsWith(marker) ? file.slice(marker.length) : "");

type RunOptions = Parameters<Exec["run"]>[3];

async function runHere(
  plugin: Plugin,
  file: string,
  call: PluginCall,
  stdin: string,
  options: RunOptions,
): Promise<string> {
  const begin = performance.now();
  const outcome = { stdout: "", stderr: "", exitCode: 0 };
  const io: Io = {
    env: environmentOf(call),
    readStdin: () => stdin,
    writeStdout(text) {
      outcome.stdout += text;
    },
    writeStderr(text) {
      outcome.stderr += text;
    },
    exit(status) {
      outcome.exitCode = status;
    },
  };
  await runPlugin(plugin, io);
  if (outcome.exitCode === 0) {
    if (outcome.stderr !== "") options.log?.(outcome.stderr);
    return outcome.stdout;
  }
  const durationMs = performance.now() - begin;
  const result = { ...outcome, signal: undefined, spawnError: undefined, stopped: undefined, durationMs };
  throw pluginErrorOf(file, call, result, options);
}

function environmentOf({ command, containerId, netns, ifName, args, path }: PluginCall): Io["env"] {
  return {
    CNI_COMMAND: command,
    CNI_CONTAINERID: containerId,
    CNI_NETNS: netns,
    CNI_IFNAME: ifName,
    CNI_ARGS: typeof args === "string" ? args : args.map((pair) => pair.join("=")).join(";"),
    CNI_PATH: path.join(":"),
  };
}
