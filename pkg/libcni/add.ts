import {
  CniError,
  ErrorCode,
  emptyResult,
  messageOf,
  type Result,
  toCniError,
  verifyContainerId,
  verifyInterfaceName,
  verifyNetworkName,
} from "@tscni/types";
import type { Found } from "./cache.ts";
import { addStep, attachmentStdin, type Context, keyOf, stepError } from "./chain.ts";
import { deleteSteps } from "./del.ts";
import type {
  AddOptions,
  Failure,
  JsonObject,
  NetworkConfigList,
  PluginConfig,
  RuntimeConf,
} from "./model.ts";
import { encodeFor } from "./result.ts";

/**
 * Runs ADD of every plugin in order and stores the result. Before the first plugin starts there is a record in the
 * cache, and a failed ADD leaves it there, so that DEL and GC find what was begun even when we were killed.
 */
export async function addList(
  ctx: Context,
  list: NetworkConfigList,
  rt: RuntimeConf,
  options: AddOptions,
): Promise<Result> {
  verifyAll(ctx, list, rt);
  const found = ctx.cache.find(keyOf(list, rt));
  const attachment = new Recorder(ctx, list, rt, found);
  attachment.begin();

  let result = emptyResult();
  let prevResult: JsonObject | undefined;
  for (const [i, plugin] of list.plugins.entries()) {
    try {
      const stdin = attachmentStdin(list, plugin, rt, prevResult);
      result = await addStep(ctx, { list, plugin, stdin }, rt, options.signal);
      prevResult = encodeFor(result, list.cniVersion);
    } catch (error) {
      const failure = stepError(list, plugin, "add", error);
      // Nothing of this ADD exists when its first plugin refuses a container that is attached already.
      if (i === 0 && attachment.existed) throw failure;
      throw await unfinished(ctx, attachment, i, plugin, prevResult, failure, options);
    }
  }
  try {
    attachment.finish(prevResult);
  } catch (error) {
    const failure = cacheError(list, error);
    const last = list.plugins.length - 1;
    throw await unfinished(ctx, attachment, last, list.plugins[last]!, prevResult, failure, options);
  }
  return result;
}

/** Everything that can be known to be wrong before a plugin has changed anything. */
function verifyAll(ctx: Context, list: NetworkConfigList, rt: RuntimeConf): void {
  if (list.plugins.length === 0)
    throw new CniError(ErrorCode.InvalidNetworkConfig, `network "${list.name}" has no plugins`);
  for (const plugin of list.plugins) {
    try {
      ctx.exec.find(plugin.type, ctx.path);
      verifyContainerId(rt.containerId);
      verifyNetworkName(list.name);
      verifyInterfaceName(rt.ifName);
    } catch (error) {
      throw stepError(list, plugin, "add", error);
    }
  }
}

/** Records a failed ADD and, if asked, takes it back. Returns the error to throw. */
async function unfinished(
  ctx: Context,
  attachment: Recorder,
  failedAt: number,
  plugin: PluginConfig,
  prevResult: JsonObject | undefined,
  failure: CniError,
  options: AddOptions,
): Promise<CniError> {
  attachment.fail({ verb: "ADD", plugin: plugin.type, message: failure.message }, prevResult);
  if (!options.rollback) return failure;
  // Also of the failed plugin, which may have left something, and of all when an older ADD or DEL was not finished;
  // and never with a signal that has fired already.
  const last = attachment.followsUnfinished ? attachment.list.plugins.length - 1 : failedAt;
  const errors = await deleteSteps(ctx, attachment.list, last, attachment.rt, prevResult);
  if (errors.length === 0) attachment.forget();
  const outcome =
    errors.length === 0
      ? "rolled back: nothing of this ADD is left"
      : `rolling back failed, a later DEL or GC will finish it: ${errors.map((e) => e.message).join("\n")}`;
  return new CniError(failure.code, failure.msg, {
    details: [failure.details, outcome].filter((line) => line !== "").join("\n"),
    cause: failure.cause ?? failure,
  });
}

function cacheError(list: NetworkConfigList, error: unknown): CniError {
  const { code, message } = toCniError(error);
  return new CniError(
    code === ErrorCode.Internal ? ErrorCode.IoFailure : code,
    `failed to set network ${JSON.stringify(list.name)} cached result: ${message}`,
    { cause: error },
  );
}

/** The cache entry of one ADD on its way. */
class Recorder {
  readonly list: NetworkConfigList;
  readonly rt: RuntimeConf;
  /** Whether the cache holds a whole attachment under this key: of an ADD that no DEL has followed. */
  readonly existed: boolean;
  /** Whether an ADD or DEL from before was not finished: it may have left something of any plugin. */
  readonly followsUnfinished: boolean;
  readonly #ctx: Context;
  readonly #found: Found;

  constructor(ctx: Context, list: NetworkConfigList, rt: RuntimeConf, found: Found) {
    this.list = list;
    this.rt = rt;
    const { attachment, bareResult } = found;
    this.followsUnfinished = attachment?.failed !== undefined;
    this.existed = bareResult !== undefined || (attachment !== undefined && !attachment.failed);
    this.#ctx = ctx;
    this.#found = found;
  }

  /** Throws when the cache can't be written: then nothing should be set up either. */
  begin(): void {
    if (this.existed) return;
    const older = this.#found.attachment;
    const plugin = this.list.plugins[0]?.type ?? "";
    const failed: Failure = older?.failed ?? { verb: "ADD", plugin, message: "ADD was not finished" };
    try {
      this.#write(failed, older?.result, false);
    } catch (error) {
      throw cacheError(this.list, error);
    }
  }

  finish(result: JsonObject | undefined): void {
    this.#write(undefined, result, true);
  }

  fail(failed: Failure, result: JsonObject | undefined): void {
    try {
      this.#write(failed, result ?? this.#found.attachment?.result ?? this.#found.bareResult, true);
    } catch (error) {
      this.#ctx.log(`could not record the failed ADD in ${this.#found.file}: ${messageOf(error)}`);
    }
  }

  forget(): void {
    try {
      this.#ctx.cache.remove(this.#found.file);
    } catch (error) {
      this.#ctx.log(`could not remove ${this.#found.file}: ${messageOf(error)}`);
    }
  }

  #write(failed: Failure | undefined, result: JsonObject | undefined, durable: boolean): void {
    const { list, rt } = this;
    this.#ctx.cache.write(
      this.#found.file,
      {
        network: list.name,
        containerId: rt.containerId,
        ifName: rt.ifName,
        netns: rt.netns,
        args: (rt.args ?? []).map(([key, value]) => [key, value]),
        capabilityArgs: rt.capabilityArgs ?? {},
        config: list.bytes,
        ...(result ? { result } : {}),
        ...(failed ? { failed } : {}),
      },
      durable,
    );
  }
}
