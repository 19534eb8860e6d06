import { findPlugin, invokePlugin, pluginVersions, type VersionInfo } from "@tscni/invoke";
import { atLeast, CniError, ErrorCode, joinErrors, messageOf, type Result, toCniError } from "@tscni/types";
import { addList } from "./add.ts";
import { ResultsCache } from "./cache.ts";
import { type Context, keyOf, networkStdin, runStep } from "./chain.ts";
import { cachedResult, checkList } from "./check.ts";
import { confListFromConf, parseConfList, parsePluginConf } from "./conflist.ts";
import { delList } from "./del.ts";
import { gcList, runtimeConfOf } from "./gc.ts";
import { field, isObject, parseJson } from "./json.ts";
import type {
  AddOptions,
  Attachment,
  CacheProblem,
  CallOptions,
  GcArgs,
  GcOptions,
  GcReport,
  LibcniOptions,
  NetworkConfigList,
  PluginConfig,
  PluginRepair,
  RuntimeConf,
} from "./model.ts";
import { repairList } from "./repair.ts";

/** Where Go's libcni keeps its cache. */
export const defaultCacheDir = "/var/lib/cni";

/** A plugin that takes longer hangs: kubelet waits 4 minutes for a whole pod. */
const defaultTimeoutMs = 180_000;

/** Runs networks: the methods of Go's libcni.CNI, under its names. */
export class Libcni {
  readonly #ctx: Context;
  readonly #rollback: boolean;

  constructor(options: LibcniOptions) {
    this.#rollback = options.rollback ?? false;
    this.#ctx = {
      path: options.path,
      exec: options.exec ?? { find: findPlugin, run: invokePlugin, versions: pluginVersions },
      cache: new ResultsCache(options.cacheDir || defaultCacheDir),
      timeoutMs: options.timeoutMs ?? defaultTimeoutMs,
      log: options.log ?? toStderr,
    };
  }

  /**
   * ADD of every plugin in order; resolves to the last one's result. When a plugin fails, what the ones before it did
   * stays (unless `rollback`) and is on record: call delNetworkList.
   */
  addNetworkList(list: NetworkConfigList, rt: RuntimeConf, options: AddOptions = {}): Promise<Result> {
    return addList(this.#ctx, list, rt, { rollback: this.#rollback, ...options });
  }

  /** CHECK of every plugin in order with the cached result; rejects with the first error. */
  checkNetworkList(list: NetworkConfigList, rt: RuntimeConf, options: CallOptions = {}): Promise<void> {
    return checkList(this.#ctx, list, rt, options);
  }

  /**
   * CHECK of every plugin in order; those that fail are asked to put back what is missing, and checked again. Needs
   * the cached attachment. Resolves to what was found plugin by plugin; rejects with a RepairError, which has that
   * too, when one of them still fails.
   */
  repairNetworkList(
    list: NetworkConfigList,
    rt: RuntimeConf,
    options: CallOptions = {},
  ): Promise<PluginRepair[]> {
    return repairList(this.#ctx, list, rt, options);
  }

  /**
   * DEL of every plugin in reverse order, past failures; rejects with all errors joined, the first one's code. Takes a
   * signal that fires while it runs, not one that has fired before: clean-up has a time limit of its own.
   */
  delNetworkList(list: NetworkConfigList, rt: RuntimeConf, options: CallOptions = {}): Promise<void> {
    return delList(this.#ctx, list, rt, options);
  }

  /** STATUS of every plugin in order; rejects with the first error, its code as it is. Below 1.1.0 nothing is run. */
  async getStatusNetworkList(list: NetworkConfigList, options: CallOptions = {}): Promise<void> {
    if (!atLeast(list.cniVersion, "1.1.0")) return;
    for (const plugin of list.plugins) {
      const step = { list, plugin, stdin: networkStdin(list, plugin) };
      await runStep(this.#ctx, "STATUS", step, undefined, options.signal);
    }
  }

  /**
   * Takes away what is not valid any more. Without `args` that is every cached attachment of the network, and the
   * plugins are told nothing about which are valid. Rejects with a GcError, which has the report too.
   */
  gcNetworkList(list: NetworkConfigList, args?: GcArgs, options: GcOptions = {}): Promise<GcReport> {
    return gcList(this.#ctx, list, args, options);
  }

  /** Asks every plugin for its versions; resolves to the capabilities that the list declares, sorted. */
  async validateNetworkList(list: NetworkConfigList, options: CallOptions = {}): Promise<string[]> {
    const errors: CniError[] = [];
    for (const plugin of list.plugins) {
      try {
        await this.#validate(plugin.type, list.cniVersion, options);
      } catch (error) {
        errors.push(toCniError(error));
      }
    }
    const error = joinErrors(errors);
    if (error) throw error;
    const declared = list.plugins.flatMap(({ capabilities }) => Object.entries(capabilities));
    return [...new Set(declared.filter(([, on]) => on).map(([capability]) => capability))].sort();
  }

  /** The result of the last ADD, or undefined when there is none. Throws when what is stored can't be read. */
  getNetworkListCachedResult(list: NetworkConfigList, rt: RuntimeConf): Result | undefined {
    return cachedResult(this.#ctx, list, rt);
  }

  /** The config of the last ADD, and `rt` with the arguments of that ADD. */
  getNetworkListCachedConfig(
    list: NetworkConfigList,
    rt: RuntimeConf,
  ): { config: string; rt: RuntimeConf } | undefined {
    const { attachment } = this.#ctx.cache.find(keyOf(list, rt));
    if (attachment === undefined) return undefined;
    const { args, capabilityArgs, config } = attachment;
    return { config, rt: { ...rt, args: args.length > 0 ? args : (rt.args ?? []), capabilityArgs } };
  }

  /** What is attached (to a container), sorted by file name. */
  getCachedAttachments(containerId?: string): Attachment[] {
    return this.readCache(containerId).attachments;
  }

  /** Attachments, and the files beside them that are none. Throws CniError 5 when the folder can't be read. */
  readCache(containerId?: string): { attachments: Attachment[]; problems: CacheProblem[] } {
    try {
      return this.#ctx.cache.list(containerId);
    } catch (error) {
      throw new CniError(ErrorCode.IoFailure, `failed to list the cached attachments: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  /** DEL by what the cache knows, for a network whose config is gone. Plugins from drop-in files are not in the cache. */
  async delAttachment(attachment: Attachment, options: CallOptions = {}): Promise<void> {
    const list = listOf(attachment);
    await delList(this.#ctx, { ...list, name: attachment.network }, runtimeConfOf(attachment), options);
  }

  addNetwork(conf: PluginConfig, rt: RuntimeConf, options: AddOptions = {}): Promise<Result> {
    return this.addNetworkList(asList(conf), rt, options);
  }

  checkNetwork(conf: PluginConfig, rt: RuntimeConf, options: CallOptions = {}): Promise<void> {
    return this.checkNetworkList(asList(conf), rt, options);
  }

  delNetwork(conf: PluginConfig, rt: RuntimeConf, options: CallOptions = {}): Promise<void> {
    return this.delNetworkList(asList(conf), rt, options);
  }

  validateNetwork(conf: PluginConfig, options: CallOptions = {}): Promise<string[]> {
    return this.validateNetworkList(asList(conf), options);
  }

  getNetworkCachedResult(conf: PluginConfig, rt: RuntimeConf): Result | undefined {
    return this.getNetworkListCachedResult(asList(conf), rt);
  }

  getNetworkCachedConfig(
    conf: PluginConfig,
    rt: RuntimeConf,
  ): { config: string; rt: RuntimeConf } | undefined {
    return this.getNetworkListCachedConfig(asList(conf), rt);
  }

  /** The spec versions that a plugin supports. */
  async getVersionInfo(type: string, options: CallOptions = {}): Promise<VersionInfo> {
    const file = this.#ctx.exec.find(type, this.#ctx.path);
    return this.#ctx.exec.versions(file, { timeoutMs: this.#ctx.timeoutMs, ...options });
  }

  async #validate(type: string, cniVersion: string, options: CallOptions): Promise<void> {
    const wanted = cniVersion || "0.1.0";
    const { supportedVersions } = await this.getVersionInfo(type, options);
    if (supportedVersions.includes(wanted)) return;
    throw new CniError(
      ErrorCode.IncompatibleCniVersion,
      `plugin ${type} does not support config version ${JSON.stringify(wanted)}`,
      { details: `it supports ${supportedVersions.join(", ")}` },
    );
  }
}

/** A single plugin as the list that it would be; its text stays what the cache keeps. */
function asList(conf: PluginConfig): NetworkConfigList {
  return {
    name: conf.name,
    cniVersion: conf.cniVersion,
    disableCheck: false,
    disableGC: false,
    loadOnlyInlinedPlugins: true,
    plugins: [conf],
    bytes: conf.bytes,
    ...(conf.source === undefined ? {} : { source: conf.source }),
  };
}

/** The list that an attachment was added with; the cache of a single-plugin ADD has a plugin object. */
function listOf({ config, file }: Attachment): NetworkConfigList {
  const json = parseJson(config, `the config in ${file}`);
  const single = isObject(json) && field(json, "plugins") === undefined && field(json, "type") !== undefined;
  return single ? confListFromConf(parsePluginConf(config)) : parseConfList(config, { source: file });
}

function toStderr(text: string): void {
  process.stderr.write(text.endsWith("\n") ? text : `${text}\n`);
}
