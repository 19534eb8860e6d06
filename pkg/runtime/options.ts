import type { Exec } from "@tscni/libcni";
import { defaultCacheDir } from "@tscni/libcni";
import type { ContainerOptions } from "./container.ts";

export interface NetworkingOptions {
  /** Folders of plugins, CNI_PATH. Default: /opt/cni/bin. */
  pluginDirs?: readonly string[];
  /** Folder of configs. Default: /etc/cni/net.d. */
  configDir?: string;
  /** How many files of the config folder `"directory"` loads, 0 for all. Default: 1. */
  maxConfigs?: number;
  /** How many networks have to be there before any is used. Default: 1. */
  minNetworks?: number;
  /** What interface names begin with. Default: eth. */
  interfacePrefix?: string;
  /** Where libcni keeps what is attached. Default: /var/lib/cni. */
  cacheDir?: string;
  /** Limit of each plugin run, ms; 0 is none. Default: 180 000. */
  pluginTimeoutMs?: number;
  /** Limit of taking back a setup that failed, ms; 0 is none. Default: 60 000. */
  rollbackTimeoutMs?: number;
  /** How plugins are found and run. Default: as processes. */
  exec?: Exec;
}

/** containerd's folders. */
const folders =
  process.platform === "win32"
    ? {
        pluginDirs: ["C:\\Program Files\\containerd\\cni\\bin"],
        configDir: "C:\\Program Files\\containerd\\cni\\conf",
      }
    : { pluginDirs: ["/opt/cni/bin"], configDir: "/etc/cni/net.d" };

export const defaults: Required<Omit<NetworkingOptions, "exec">> = {
  ...folders,
  maxConfigs: 1,
  minNetworks: 1,
  interfacePrefix: "eth",
  cacheDir: defaultCacheDir,
  pluginTimeoutMs: 180_000,
  rollbackTimeoutMs: 60_000,
};

export interface OperationOptions {
  /**
   * Ends the operation: the plugin that runs is killed, no other one starts, and the error says so. What a setup had begun is
   * still taken back.
   */
  signal?: AbortSignal;
  /** The same after so many milliseconds; 0 is no limit. */
  timeoutMs?: number;
}

export interface SetupOptions extends OperationOptions, ContainerOptions {
  /** Take a setup that failed on one network back on all. Default: true. */
  rollback?: boolean;
  /** One network after the other, and none after one that failed. Default: all at once. */
  serially?: boolean;
}

export interface GcOptions extends OperationOptions {
  /**
   * Leave attachments alone whose network is not loaded. The cache may be shared with other programs, whose containers the
   * caller does not know to live. Default: false, so that what a removed config has left goes, too.
   */
  loadedOnly?: boolean;
  /** Only tell what would be deleted. Default: false. */
  dryRun?: boolean;
}

export interface RemoveOptions extends OperationOptions, ContainerOptions {}
export interface CheckOptions extends OperationOptions, ContainerOptions {}

/** One signal for both ways to end an operation. */
export function signalOf({ signal, timeoutMs }: OperationOptions): AbortSignal | undefined {
  if (!timeoutMs) return signal;
  const limit = AbortSignal.timeout(timeoutMs);
  return signal === undefined ? limit : AbortSignal.any([signal, limit]);
}
