import { resolve } from "node:path";
import type { CallOptions, Libcni, NetworkConfigList } from "@tscni/libcni";
import { CniError } from "@tscni/types";
import { parseDuration } from "./duration.ts";
import type { Parsed } from "./flags.ts";
import type { Io } from "./io.ts";
import type { Style } from "./style.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** What a command gets to work with. */
export interface Context {
  words: readonly string[];
  flags: Parsed;
  /** Whether stdout is for a program: one JSON value. */
  json: boolean;
  env: Env;
  io: Io;
  style: Style;
}

const defaultConfDir = "/etc/cni/net.d";

/** The folder of network configs as the user named it: `--conf-dir`, else NETCONFPATH, else the usual one. */
export const confDirOf = ({ flags, env }: Context): string =>
  flags.value("conf-dir") || env.NETCONFPATH || defaultConfDir;

/** The folders of CNI_PATH. */
export const pluginDirsOf = ({ env }: Context): string[] =>
  env.CNI_PATH ? env.CNI_PATH.split(process.platform === "win32" ? ";" : ":") : [];

/** The interface's name: `--ifname`, else CNI_IFNAME, else eth0. */
export const ifNameOf = ({ flags, env }: Context): string =>
  flags.value("ifname") || env.CNI_IFNAME || "eth0";

/** A path as the user means it: relative ones from the io's working directory. */
export const absolute = ({ io }: Context, path: string): string => resolve(io.cwd, path);

/** The network of this name. Errors name the folder as it was given, as Go's do. */
export async function networkOf(context: Context, name: string): Promise<NetworkConfigList> {
  const { loadConfList } = await import("@tscni/libcni");
  const dir = confDirOf(context);
  try {
    return loadConfList(dir, name);
  } catch (error) {
    if (!(error instanceof CniError) || !error.msg.startsWith("no net configuration with name")) throw error;
    const { nearest } = await import("@tscni/conf");
    const meant = nearest(name, Object.keys(await networksIn(dir)));
    throw new CniError(
      error.code,
      error.msg,
      meant === undefined ? {} : { details: `did you mean "${meant}"?` },
    );
  }
}

/** The networks of a config folder, each with its file. Files that cannot be read are passed over. */
export async function networksIn(dir: string): Promise<Record<string, string>> {
  const { confFromFile, confListFromFile, listConfFiles } = await import("@tscni/libcni");
  const found: Record<string, string> = {};
  for (const file of listConfFiles(dir)) {
    try {
      const { name } = file.endsWith(".conflist") ? confListFromFile(file) : confFromFile(file);
      found[name] ??= file;
    } catch {}
  }
  return found;
}

/** libcni as flags and environment want it. */
export async function libcniOf(context: Context): Promise<Libcni> {
  const { Libcni } = await import("@tscni/libcni");
  const { flags, io } = context;
  const cacheDir = flags.value("cache-dir");
  const timeout = timeoutOf(context);
  return new Libcni({
    path: pluginDirsOf(context),
    log: (text) => io.stderr(text.endsWith("\n") ? text : `${text}\n`),
    ...(cacheDir ? { cacheDir: absolute(context, cacheDir) } : {}),
    ...(timeout === undefined ? {} : { timeoutMs: timeout }),
    ...(io.exec ? { exec: io.exec } : {}),
  });
}

/** `--timeout` in milliseconds. */
export function timeoutOf({ flags }: Context): number | undefined {
  const text = flags.value("timeout");
  return text === undefined ? undefined : parseDuration(text);
}

/** What stops the plugins of a command: the user, or `--timeout` for the whole of it. */
export function callOptions(context: Context): CallOptions {
  const timeout = timeoutOf(context);
  const signals = [context.io.signal, timeout === undefined ? undefined : AbortSignal.timeout(timeout)];
  const given = signals.filter((signal) => signal !== undefined);
  return given.length === 0 ? {} : { signal: AbortSignal.any(given) };
}
