import type { CniError, Result } from "@tscni/types";
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
  RuntimeConf,
  VersionInfo,
} from "./model.ts";

export * from "./model.ts";

// Signatures only, so that others can compile against them; the bodies follow within the hour.

/** Parses a conflist. With `source` (its file) plugins from `<folder>/<network name>/*.conf` are appended. */
export declare function parseConfList(
  text: string,
  options?: { folder?: string; source?: string },
): NetworkConfigList;
/** Parses one plugin object. */
export declare function parsePluginConf(text: string, options?: { source?: string }): PluginConfig;
export declare function confListFromFile(file: string): NetworkConfigList;
export declare function confFromFile(file: string): PluginConfig;
export declare function confListFromConf(conf: PluginConfig): NetworkConfigList;
/** The network called `name` in a folder, found as libcni does. */
export declare function loadConfList(dir: string, name: string): NetworkConfigList;
/** Sorted; extensions default to .conflist, .conf, .json. */
export declare function listConfFiles(dir: string, extensions?: readonly string[]): string[];
/** What cnitool prints for ADD: never throws for a result that has no address, as 0.2.0 lists may give. */
export declare function printResult(result: Result, cniVersion: string): string;

/** What gcNetworkList throws after having done all it could. */
export declare class GcError extends CniErrorType {
  readonly report: GcReport;
}
declare const CniErrorType: typeof CniError;

export declare class Libcni {
  constructor(options: LibcniOptions);
  addNetworkList(list: NetworkConfigList, rt: RuntimeConf, options?: AddOptions): Promise<Result>;
  checkNetworkList(list: NetworkConfigList, rt: RuntimeConf, options?: CallOptions): Promise<void>;
  delNetworkList(list: NetworkConfigList, rt: RuntimeConf, options?: CallOptions): Promise<void>;
  getStatusNetworkList(list: NetworkConfigList, options?: CallOptions): Promise<void>;
  /** The capabilities that the list's plugins declare, sorted. */
  validateNetworkList(list: NetworkConfigList, options?: CallOptions): Promise<string[]>;
  /** Without `args` every cached attachment of the network is stale. */
  gcNetworkList(list: NetworkConfigList, args?: GcArgs, options?: GcOptions): Promise<GcReport>;
  getNetworkListCachedResult(list: NetworkConfigList, rt: RuntimeConf): Result | undefined;
  getNetworkListCachedConfig(
    list: NetworkConfigList,
    rt: RuntimeConf,
  ): { config: string; rt: RuntimeConf } | undefined;
  getCachedAttachments(containerId?: string): Attachment[];
  /** Attachments, and the files beside them that are none. */
  readCache(containerId?: string): { attachments: Attachment[]; problems: CacheProblem[] };
  /** DEL by what the cache knows, for a network whose config is gone. */
  delAttachment(attachment: Attachment, options?: CallOptions): Promise<void>;
  addNetwork(conf: PluginConfig, rt: RuntimeConf, options?: AddOptions): Promise<Result>;
  checkNetwork(conf: PluginConfig, rt: RuntimeConf, options?: CallOptions): Promise<void>;
  delNetwork(conf: PluginConfig, rt: RuntimeConf, options?: CallOptions): Promise<void>;
  validateNetwork(conf: PluginConfig, options?: CallOptions): Promise<string[]>;
  getNetworkCachedResult(conf: PluginConfig, rt: RuntimeConf): Result | undefined;
  getNetworkCachedConfig(
    conf: PluginConfig,
    rt: RuntimeConf,
  ): { config: string; rt: RuntimeConf } | undefined;
  getVersionInfo(type: string, options?: CallOptions): Promise<VersionInfo>;
}
