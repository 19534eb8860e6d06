import { atLeast, CniError, ErrorCode, parseVersion, type Result, toCniError } from "@tscni/types";
import type { Found } from "./cache.ts";
import { attachmentStdin, type Context, keyOf, runStep, withCached } from "./chain.ts";
import type { CallOptions, JsonObject, NetworkConfigList, PluginConfig, RuntimeConf } from "./model.ts";
import { encodeFor, readResult } from "./result.ts";

/**
 * CHECK of every plugin in order, with the cached result, and with what the runtime does not say again as the ADD
 * had it (Go leaves CNI_ARGS and capability arguments out then, so that its portmap finds nothing to check).
 */
export async function checkList(
  ctx: Context,
  list: NetworkConfigList,
  rt: RuntimeConf,
  { signal }: CallOptions,
): Promise<void> {
  verifyCheckable(list);
  if (list.disableCheck) return;
  const found = ctx.cache.find(keyOf(list, rt));
  const result = resultOf(list, found);
  const prevResult = result && encodeFor(result, list.cniVersion);
  const whole = withCached(rt, found);
  for (const plugin of list.plugins) await checkStep(ctx, list, plugin, whole, prevResult, signal);
}

/** CHECK of one plugin; rejects with what it finds wrong. */
export async function checkStep(
  ctx: Context,
  list: NetworkConfigList,
  plugin: PluginConfig,
  rt: RuntimeConf,
  prevResult: JsonObject | undefined,
  signal: AbortSignal | undefined,
): Promise<void> {
  const stdin = attachmentStdin(list, plugin, rt, prevResult);
  await runStep(ctx, "CHECK", { list, plugin, stdin }, rt, signal);
}

/** Throws code 7 for a version that is none, code 1 for one without CHECK. */
export function verifyCheckable(list: NetworkConfigList): void {
  if (list.cniVersion !== "" && parseVersion(list.cniVersion) === undefined)
    throw new CniError(ErrorCode.InvalidNetworkConfig, `invalid version ${JSON.stringify(list.cniVersion)}`);
  if (!atLeast(list.cniVersion, "0.4.0"))
    throw new CniError(
      ErrorCode.IncompatibleCniVersion,
      `configuration version ${JSON.stringify(list.cniVersion)} does not support the CHECK command`,
    );
}

/** The result of the last ADD that succeeded, or undefined. Throws when what is stored can't be read. */
export function cachedResult(ctx: Context, list: NetworkConfigList, rt: RuntimeConf): Result | undefined {
  return resultOf(list, ctx.cache.find(keyOf(list, rt)));
}

export function resultOf(list: { name: string }, found: Found): Result | undefined {
  const { attachment, bareResult, problem, file } = found;
  // What a failed ADD got as far as is for its DEL alone.
  const stored = attachment?.failed?.verb === "ADD" ? undefined : (attachment?.result ?? bareResult);
  try {
    if (problem !== undefined) throw new CniError(ErrorCode.DecodingFailure, `${file}: ${problem}`);
    return stored && readResult(stored);
  } catch (error) {
    const { code, message } = toCniError(error);
    throw new CniError(code, `failed to get network ${JSON.stringify(list.name)} cached result: ${message}`, {
      cause: error,
    });
  }
}
