import { PluginError } from "@tscni/invoke";
import { atLeast, batchKey, CniError, ErrorCode, joinErrors, messageOf } from "@tscni/types";
import type { Found } from "./cache.ts";
import { attachmentStdin, type Context, idsOf, keyOf, runStep, stepError, withCached } from "./chain.ts";
import type { AttachmentId, CallOptions, JsonObject, NetworkConfigList, RuntimeConf } from "./model.ts";
import { encodeFor, readResult } from "./result.ts";

/**
 * Runs DEL of every plugin in reverse order, past those that fail, and drops the cache entry when none did; otherwise
 * it stays for a retry, and every error is reported (Go stops at the first). What the runtime does not say again,
 * CNI_ARGS and capability arguments, is taken from the ADD.
 */
export async function delList(
  ctx: Context,
  list: NetworkConfigList,
  rt: RuntimeConf,
  options: CallOptions & { next?: readonly AttachmentId[] },
): Promise<void> {
  const found = ctx.cache.find(keyOf(list, rt));
  if (found.problem)
    ctx.log(`DEL goes on without the cached result, ${found.file} can't be used: ${found.problem}`);
  const whole = withCached(rt, found);
  // A signal that has fired before we began would mean that DEL never reaches a plugin, and the address leaks.
  const signal = options.signal?.aborted ? undefined : options.signal;
  const prevResult = prevResultOf(ctx, list, found);
  const batch = withNext(list, options.next);
  const errors = await deleteSteps(ctx, batch, list.plugins.length - 1, whole, prevResult, signal);
  const error = joinErrors(errors);
  if (error === undefined) return remove(ctx, found);
  keep(ctx, list, whole, found, errors);
  throw error;
}

/** DEL of the plugins from number `last` back to the first, past all errors, which are returned. */
export async function deleteSteps(
  ctx: Context,
  list: NetworkConfigList,
  last: number,
  rt: RuntimeConf,
  prevResult: JsonObject | undefined,
  signal?: AbortSignal,
): Promise<CniError[]> {
  const errors: CniError[] = [];
  // The key came with 0.4.0 (for DEL).
  const known = atLeast(list.cniVersion, "0.4.0") ? prevResult : undefined;
  for (const plugin of list.plugins.slice(0, last + 1).reverse()) {
    try {
      if (signal?.aborted) throw new CniError(ErrorCode.Internal, "not run: the caller stopped the DEL");
      await runStep(
        ctx,
        "DEL",
        { list, plugin, stdin: attachmentStdin(list, plugin, rt, known) },
        rt,
        signal,
      );
    } catch (error) {
      if (isUnknownContainer(error))
        ctx.log(`${plugin.type} has nothing of container ${rt.containerId}: ${error.message}`);
      else errors.push(stepError(list, plugin, "delete", error));
    }
  }
  return errors;
}

/** A plugin's code 3: "the runtime does not need to perform any container network cleanup". */
const isUnknownContainer = (error: unknown): error is PluginError =>
  error instanceof PluginError && error.code === ErrorCode.UnknownContainer;

/** The list with plugins that are told whose DEL comes next. */
function withNext(list: NetworkConfigList, next: readonly AttachmentId[] = []): NetworkConfigList {
  if (next.length === 0) return list;
  const told = { [batchKey]: idsOf(next) };
  return { ...list, plugins: list.plugins.map((plugin) => ({ ...plugin, raw: { ...plugin.raw, ...told } })) };
}

function prevResultOf(ctx: Context, list: NetworkConfigList, found: Found): JsonObject | undefined {
  const stored = found.attachment?.result ?? found.bareResult;
  if (stored === undefined) return undefined;
  try {
    return encodeFor(readResult(stored), list.cniVersion);
  } catch (error) {
    ctx.log(`DEL goes on without the cached result of ${found.file}: ${messageOf(error)}`);
    return undefined;
  }
}

function remove(ctx: Context, found: Found): void {
  try {
    ctx.cache.remove(found.file);
  } catch (error) {
    ctx.log(`could not remove ${found.file}: ${messageOf(error)}`);
  }
}

/** Keeps what is there, marked, so that a retry or GC finds it; a damaged file becomes a whole one. */
function keep(
  ctx: Context,
  list: NetworkConfigList,
  rt: RuntimeConf,
  found: Found,
  errors: readonly CniError[],
): void {
  const { attachment } = found;
  // A DEL of what was never added leaves no record; nor does a second failure replace that of the ADD.
  if ((attachment === undefined && found.problem === undefined) || attachment?.failed) return;
  const failing = /^plugin type="([^"]*)"/.exec(errors[0]!.msg)?.[1] ?? "";
  const result = attachment?.result ?? found.bareResult;
  try {
    ctx.cache.write(
      found.file,
      {
        network: list.name,
        containerId: rt.containerId,
        ifName: rt.ifName,
        netns: attachment?.netns ?? rt.netns,
        args: (rt.args ?? []).map(([key, value]) => [key, value]),
        capabilityArgs: rt.capabilityArgs ?? {},
        config: attachment?.config ?? list.bytes,
        ...(result ? { result } : {}),
        failed: { verb: "DEL", plugin: failing, message: errors[0]!.message },
      },
      true,
    );
  } catch (error) {
    ctx.log(`could not record the failed DEL in ${found.file}: ${messageOf(error)}`);
  }
}
