import { PluginError, parseStdout } from "@tscni/invoke";
import { CniError, decodeResult, type Result, toCniError } from "@tscni/types";
import type { CacheKey, Found, ResultsCache } from "./cache.ts";
import { withKeys } from "./json.ts";
import type {
  AttachmentId,
  Exec,
  JsonObject,
  NetworkConfigList,
  PluginConfig,
  RuntimeConf,
} from "./model.ts";

/** What every verb works with. */
export interface Context {
  path: readonly string[];
  exec: Exec;
  cache: ResultsCache;
  timeoutMs: number;
  log(text: string): void;
}

/** One plugin of a list and the stdin that it gets. */
export interface Step {
  list: NetworkConfigList;
  plugin: PluginConfig;
  stdin: string;
}

const nobody: RuntimeConf = { containerId: "", netns: "", ifName: "" };

/** Runs one plugin of the list; resolves to its stdout. */
export function runStep(
  ctx: Context,
  verb: string,
  { list, plugin, stdin }: Step,
  rt: RuntimeConf = nobody,
  signal?: AbortSignal,
): Promise<string> {
  const file = ctx.exec.find(plugin.type, ctx.path);
  const { containerId, netns, ifName, args = [] } = rt;
  const call = { command: verb, containerId, netns, ifName, args, path: ctx.path };
  return ctx.exec.run(file, call, stdin, {
    network: list.name,
    timeoutMs: ctx.timeoutMs,
    log: ctx.log,
    ...(signal ? { signal } : {}),
  });
}

/** ADD of one plugin, its result decoded. */
export async function addStep(
  ctx: Context,
  step: Step,
  rt: RuntimeConf,
  signal?: AbortSignal,
): Promise<Result> {
  const stdout = await runStep(ctx, "ADD", step, rt, signal);
  return decodeResult(
    parseStdout(step.plugin.type, { command: "ADD" }, stdout, step.list.name),
    step.list.cniVersion,
  );
}

/**
 * What ADD, CHECK and DEL give a plugin on stdin: its own object, the list's name and version, the result so far,
 * and of the capability arguments those that it declares. https://www.cni.dev/docs/spec/#deriving-request-configuration
 */
export function attachmentStdin(
  list: NetworkConfigList,
  plugin: PluginConfig,
  rt: RuntimeConf,
  prevResult: JsonObject | undefined,
): string {
  const given = rt.capabilityArgs ?? {};
  const runtimeConfig = Object.entries(plugin.capabilities)
    .filter(([capability, on]) => on && Object.hasOwn(given, capability))
    .map(([capability]) => [capability, given[capability]]);
  return JSON.stringify(
    withKeys(plugin.raw, {
      name: list.name,
      cniVersion: list.cniVersion,
      ...(prevResult ? { prevResult } : {}),
      ...(runtimeConfig.length > 0 ? { runtimeConfig: Object.fromEntries(runtimeConfig) } : {}),
    }),
  );
}

/** Attachments in the spelling of the spec's GC. */
export const idsOf = (attachments: readonly AttachmentId[]) =>
  attachments.map(({ containerId, ifName }) => ({ containerID: containerId, ifname: ifName }));

/** What STATUS and GC give on stdin; without `valid`, GC knows nothing about attachments. */
export function networkStdin(
  list: NetworkConfigList,
  plugin: PluginConfig,
  valid?: readonly AttachmentId[],
): string {
  const attachments = valid && idsOf(valid);
  return JSON.stringify(
    withKeys(plugin.raw, {
      name: list.name,
      cniVersion: list.cniVersion,
      // The second is a misspelling of the spec that plugins were built to (cni#1101).
      ...(attachments
        ? { "cni.dev/valid-attachments": attachments, "cni.dev/attachments": attachments }
        : {}),
    }),
  );
}

/** A plugin's error with plugin and network named, in the Go library's words. Code and details stay. */
export function stepError(
  list: NetworkConfigList,
  plugin: PluginConfig,
  doing: "add" | "delete",
  error: unknown,
): CniError {
  const inner = toCniError(error);
  const name = plugin.name === "" ? "" : ` name=${JSON.stringify(plugin.name)}`;
  // A plugin that ran has said so in its details.
  const network = inner instanceof PluginError ? "" : `in network ${JSON.stringify(list.name)}`;
  return new CniError(
    inner.code,
    `plugin type=${JSON.stringify(plugin.type)}${name} failed (${doing}): ${inner.msg}`,
    { details: [inner.details, network].filter((line) => line !== "").join("\n"), cause: inner },
  );
}

export function keyOf(list: { name: string }, rt: RuntimeConf): CacheKey {
  return { network: list.name, containerId: rt.containerId, ifName: rt.ifName };
}

/** What the runtime does not say again, CNI_ARGS and capability arguments, as the ADD had it. */
export function withCached(rt: RuntimeConf, { attachment }: Found): RuntimeConf {
  if (attachment === undefined) return rt;
  return {
    ...rt,
    args: rt.args && rt.args.length > 0 ? rt.args : attachment.args,
    capabilityArgs: { ...attachment.capabilityArgs, ...rt.capabilityArgs },
  };
}
