import type { InvokeOptions, PluginCall, VersionInfo } from "@tscni/invoke";
import type { CniError } from "@tscni/types";

export type { VersionInfo } from "@tscni/invoke";

/** A JSON object as read: unknown keys and numbers that do not fit a double are kept for the plugins. */
export type JsonObject = Record<string, unknown>;

/** One plugin object of a conflist (or a .conf file), with what libcni itself needs to know of it. */
export interface PluginConfig {
  /** The executable's name. */
  type: string;
  /** Only .conf files and old conflists have these two; "" otherwise. A list's own win. */
  name: string;
  cniVersion: string;
  capabilities: Record<string, boolean>;
  ipam?: { type?: string };
  /** The whole object; what the plugin gets on stdin is this with the runtime's keys put in. */
  raw: JsonObject;
  /** `raw` as text: what a single-plugin ADD keeps in the cache. */
  bytes: string;
  /** The file it came from, when it is not inlined in the conflist. */
  source?: string;
}

/** A network: https://www.cni.dev/docs/spec/#configuration-format */
export interface NetworkConfigList {
  name: string;
  /** The version chosen out of `cniVersion` and `cniVersions`; "" stands for 0.1.0. */
  cniVersion: string;
  disableCheck: boolean;
  disableGC: boolean;
  loadOnlyInlinedPlugins: boolean;
  plugins: PluginConfig[];
  /** The conflist's text as it was read: the cache keeps it. */
  bytes: string;
  /** The file it came from. */
  source?: string;
}

/** What the runtime says about one attachment: https://www.cni.dev/docs/spec/#parameters */
export interface RuntimeConf {
  containerId: string;
  /** Path; may be "" for DEL. */
  netns: string;
  ifName: string;
  /** CNI_ARGS, in order. */
  args?: readonly (readonly [string, string])[];
  /** By capability name; a plugin gets those that its config says it can. */
  capabilityArgs?: JsonObject;
}

export interface AttachmentId {
  containerId: string;
  ifName: string;
}

/** Why an attachment in the cache is not a whole one. */
export interface Failure {
  /** ADD: it was never finished. DEL: some of it may be left. */
  verb: "ADD" | "DEL";
  /** The type of the first plugin that failed. */
  plugin: string;
  message: string;
}

/** One entry of the cache. */
export interface Attachment extends AttachmentId {
  network: string;
  netns: string;
  args: [string, string][];
  capabilityArgs: JsonObject;
  /** The text of the conflist that it was added with. */
  config: string;
  /** The result as stored, in the version that its `cniVersion` names. After a failed ADD: of the last plugin that succeeded. */
  result?: JsonObject;
  /** The cache file. */
  file: string;
  failed?: Failure;
}

/** A file in the cache folder that is no attachment. */
export interface CacheProblem {
  file: string;
  message: string;
}

export interface CallOptions {
  /** Kills the plugin that runs and starts no other one. A DEL ignores a signal that has fired before it began. */
  signal?: AbortSignal;
}

export interface AddOptions extends CallOptions {
  /** Undo a failed ADD at once; the default is that of the Libcni. */
  rollback?: boolean;
}

export interface GcOptions extends CallOptions {
  /** Only tell what would be deleted. */
  dryRun?: boolean;
}

export interface GcArgs {
  validAttachments: readonly AttachmentId[];
}

export interface GcReport {
  /** True when the list says `disableGC`: nothing was done. */
  disabled: boolean;
  /** Stale attachments that were deleted; with `dryRun`, that would be. */
  deleted: Attachment[];
  /** Stale attachments whose DEL failed. */
  failed: { attachment: Attachment; error: CniError }[];
  /** Attachments of this network that are valid. */
  kept: Attachment[];
  /** Types of the plugins that ran GC without an error; with `dryRun`, that would run. */
  plugins: string[];
  /** Files of the cache that can't be read as attachments, of this network or another. */
  problems: CacheProblem[];
}

/** What repair found at one plugin of the chain. */
export interface PluginRepair {
  type: string;
  /** Why CHECK failed; absent when nothing was missing. */
  problem?: CniError;
  /** Why CHECK failed after the plugin was asked to repair; absent when all is well now. */
  left?: CniError;
}

/** How plugins are found and run; the default starts executables (@tscni/invoke). */
export interface Exec {
  /** The plugin's file; throws CniError when there is none. */
  find(type: string, paths: readonly string[]): string;
  /** Resolves to the plugin's stdout; rejects with a CniError. */
  run(file: string, call: PluginCall, stdin: string, options: InvokeOptions): Promise<string>;
  versions(file: string, options: InvokeOptions): Promise<VersionInfo>;
}

export interface LibcniOptions {
  /** Folders to look for plugins in: CNI_PATH. */
  path: readonly string[];
  /** Default /var/lib/cni; the attachments are in its folder `results`. */
  cacheDir?: string;
  /** Time limit of each plugin run; default 180 000, 0 for none. */
  timeoutMs?: number;
  /** Undo a failed ADD at once. Default false, as in Go: the runtime calls DEL. */
  rollback?: boolean;
  /** Gets warnings, and what successful plugins wrote to stderr. Default: standard error. */
  log?: (text: string) => void;
  exec?: Exec;
}
