import { findPlugin, invokePlugin, pluginVersions } from "@tscni/invoke";
import { type Attachment, type CacheProblem, defaultCacheDir, type Exec, Libcni } from "@tscni/libcni";
import { type Result, toCniError } from "@tscni/types";
import { type ContainerOptions, runtimeConfOf } from "./container.ts";
import { failed, failureOf, isNetworkingError, type NetworkFailure, NetworkingError } from "./errors.ts";
import { Events, type Listener, type NetworkingEvent } from "./events.ts";
import { Gate } from "./gate.ts";
import { collectGarbage, type GarbageReport, type LivingContainer } from "./gc.ts";
import { loadNetworks, type Network, type NetworkSource } from "./networks.ts";
import { removeAttachments } from "./remove.ts";
import { type SetupResult, setupResultOf } from "./result.ts";
import { askStatus } from "./status.ts";
import { observe, observedExec } from "./telemetry.ts";
import { type WatchOptions, watchFolder } from "./watch.ts";

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
  /** How plugins are found and run. Default: as processes. */
  exec?: Exec;
}

export interface OperationOptions {
  /** Kills the plugin that runs and starts no other one. What was begun is still taken back. */
  signal?: AbortSignal;
  /** The same after so many milliseconds. */
  timeoutMs?: number;
}

export interface SetupOptions extends OperationOptions, ContainerOptions {
  /** Take a setup that failed on one network back on all. Default: true. */
  rollback?: boolean;
  /** One network after the other, and none after one that failed. Default: all at once. */
  serially?: boolean;
}

export interface RemoveOptions extends OperationOptions, ContainerOptions {}
export interface CheckOptions extends OperationOptions, ContainerOptions {}

/**
 * The networks of a program that starts containers: loads them, attaches containers to all of them and takes these off
 * again, and knows whether networking is ready. Throws {@link NetworkingError}.
 */
export class Networking {
  readonly #options: Required<Omit<NetworkingOptions, "exec">>;
  readonly #libcni: Libcni;
  readonly #gate = new Gate();
  readonly #events = new Events();
  #networks: readonly Network[] = [];
  #status: Promise<void> | undefined;

  constructor(options: NetworkingOptions = {}) {
    this.#options = {
      pluginDirs: options.pluginDirs ?? ["/opt/cni/bin"],
      configDir: options.configDir ?? "/etc/cni/net.d",
      maxConfigs: options.maxConfigs ?? 1,
      minNetworks: options.minNetworks ?? 1,
      interfacePrefix: options.interfacePrefix ?? "eth",
      cacheDir: options.cacheDir ?? defaultCacheDir,
      pluginTimeoutMs: options.pluginTimeoutMs ?? 180_000,
    };
    this.#libcni = new Libcni({
      path: this.#options.pluginDirs,
      cacheDir: this.#options.cacheDir,
      timeoutMs: this.#options.pluginTimeoutMs,
      log: (text) => this.#events.emit({ type: "log", text }),
      exec: observedExec(options.exec ?? { find: findPlugin, run: invokePlugin, versions: pluginVersions }),
    });
  }

  /** The networks in force. */
  get networks(): readonly Network[] {
    return this.#networks;
  }

  /** Loads the networks anew, all or none: when a source can't be loaded, those of before stay in force. */
  load(...sources: readonly NetworkSource[]): readonly Network[] {
    const { configDir, maxConfigs, interfacePrefix: prefix } = this.#options;
    this.#use(loadNetworks(sources, { configDir, maxConfigs, prefix }));
    return this.#networks;
  }

  /**
   * Loads the networks now and whenever the config folder changes, and returns what ends that. A change to something that
   * can't be used is told by an event `config-broken`, and the networks of before stay in force; a folder without
   * a config, or none, leaves no network. Sources other than the folder's are loaded again with it.
   */
  watch(sources: readonly NetworkSource[] = ["directory"], options: WatchOptions = {}): () => void {
    const reload = () => {
      try {
        this.load(...sources);
      } catch (error) {
        if (!isNetworkingError(error)) throw error;
        if (error.code === "not-initialized") this.#use([]);
        else this.#events.emit({ type: "config-broken", error });
      }
    };
    const end = watchFolder(this.#options.configDir, reload, options);
    reload();
    return end;
  }

  #use(networks: readonly Network[]): void {
    this.#networks = networks;
    this.#events.emit({ type: "networks", networks });
  }

  /** Throws `not-initialized` while fewer networks are loaded than the minimum. Asks no plugin. */
  verifyLoaded(): void {
    if (this.#networks.length >= this.#options.minNetworks) return;
    throw new NetworkingError(
      "not-initialized",
      `cni plugin not initialized: ${this.#networks.length} of at least ${this.#options.minNetworks} networks are loaded`,
    );
  }

  /**
   * Attaches a container to every network. Where one fails, the others are seen to their end first, and then all are taken
   * back, unless `rollback` is false. Throws `setup-failed` with what each network said.
   */
  async setup(id: string, netns: string, options: SetupOptions = {}): Promise<SetupResult> {
    this.verifyLoaded();
    const networks = this.#networks;
    return this.#observed("setup", id, options, async (signal) => {
      const attach = (network: Network): Promise<Result> => {
        signal?.throwIfAborted();
        const call = signal ? { signal } : {};
        return this.#libcni.addNetworkList(
          network.list,
          runtimeConfOf({ id, netns }, network, options),
          call,
        );
      };
      const outcomes = options.serially ? await inTurn(networks, attach) : await atOnce(networks, attach);
      try {
        const failures = failuresOf(networks, outcomes);
        if (failures.length > 0)
          throw failed("setup-failed", `container ${id} could not be attached`, failures);
        return setupResultOf(
          outcomes.map((outcome) => (outcome as PromiseFulfilledResult<Result>).value),
          `${this.#options.interfacePrefix}0`,
        );
      } catch (error) {
        if (options.rollback ?? true)
          await this.#takeBack(id, netns, networks.slice(0, outcomes.length), options);
        throw error;
      }
    });
  }

  /**
   * Takes a container off every network, past failures, also off those that it was attached to by a config which is gone by
   * now. `netns` may be "" when the namespace is gone. Throws `remove-failed` with every error.
   */
  async remove(id: string, netns = "", options: RemoveOptions = {}): Promise<void> {
    const networks = this.#networks;
    await this.#observed("remove", id, options, async (signal) => {
      const failures = await removeAttachments(this.#libcni, { id, netns }, networks, options, signal);
      if (failures.length > 0)
        throw failed("remove-failed", `container ${id} could not be removed`, failures);
    });
  }

  /** Whether a container's attachments are as they were made. Throws `check-failed` at the first that is not. */
  async check(id: string, netns: string, options: CheckOptions = {}): Promise<void> {
    this.verifyLoaded();
    const networks = this.#networks;
    await this.#observed("check", id, options, async (signal) => {
      for (const network of networks) {
        try {
          const rt = runtimeConfOf({ id, netns }, network, options);
          await this.#libcni.checkNetworkList(network.list, rt, signal ? { signal } : {});
        } catch (error) {
          throw failed("check-failed", `container ${id}`, [failureOf(network.name, error)]);
        }
      }
    });
  }

  /**
   * Whether containers can be attached now: enough networks are loaded, and every plugin of each answers STATUS without an
   * error. Callers that come while the plugins are asked share the answer. Throws `not-initialized` or `not-ready`.
   */
  async status(options: OperationOptions = {}): Promise<void> {
    this.verifyLoaded();
    const begin = performance.now();
    this.#status ??= observe("status", {}, () => askStatus(this.#libcni, this.#networks))
      .catch((error: unknown) => {
        const durationMs = performance.now() - begin;
        this.#events.emit({ type: "failed", operation: "status", durationMs, error });
        throw error;
      })
      .finally(() => {
        this.#status = undefined;
      });
    await unlessAborted(this.#status, signalOf(options));
  }

  /**
   * Takes away everything of containers that are not among the living: attachments in the cache, also those of networks
   * whose config is gone, and what the plugins find beside. Waits for operations on the way, and they for it.
   */
  async gc(living: Iterable<LivingContainer>, options: OperationOptions = {}): Promise<GarbageReport> {
    const keep = [...living];
    return this.#observed("gc", undefined, options, (signal) =>
      collectGarbage(this.#libcni, this.#networks, keep, signal),
    );
  }

  /** What is attached, by the cache, and the files there that can't be read. Of one container if its id is given. */
  attachments(id?: string): { attachments: Attachment[]; problems: CacheProblem[] } {
    return this.#libcni.readCache(id);
  }

  /** What is in force, for those who show it (`crictl info`). */
  get config(): NetworkingConfig {
    const { pluginDirs, configDir, maxConfigs, interfacePrefix } = this.#options;
    return { pluginDirs, configDir, maxConfigs, interfacePrefix, networks: this.#networks };
  }

  /** Tells of everything that happens from now on; returns what ends that. */
  subscribe(listener: Listener): () => void {
    return this.#events.subscribe(listener);
  }

  /** The same as a stream, until the signal fires or the loop over it is left. */
  events(signal?: AbortSignal): AsyncGenerator<NetworkingEvent, void, undefined> {
    return this.#events.stream(signal);
  }

  /** With a clean-up's own time limit: the signal that stopped the setup must not stop this. */
  async #takeBack(
    id: string,
    netns: string,
    networks: readonly Network[],
    options: SetupOptions,
  ): Promise<void> {
    const failures = await removeAttachments(this.#libcni, { id, netns }, networks, options, undefined);
    this.#events.emit({ type: "rolled-back", containerId: id, failures });
  }

  /** Runs an operation when it may run, and tells of its end. */
  async #observed<T>(
    operation: "setup" | "remove" | "check" | "gc",
    id: string | undefined,
    options: OperationOptions,
    work: (signal: AbortSignal | undefined) => Promise<T>,
  ): Promise<T> {
    const signal = signalOf(options);
    const begin = performance.now();
    const about = id === undefined ? {} : { containerId: id };
    try {
      const attributes = id === undefined ? {} : { "cni.container.id": id };
      const result = await observe(operation, attributes, () =>
        this.#gate.run(id, signal, () => work(signal)),
      );
      const durationMs = performance.now() - begin;
      if (operation === "setup")
        this.#events.emit({ type: "setup", containerId: id!, durationMs, result: result as SetupResult });
      if (operation === "remove") this.#events.emit({ type: "removed", containerId: id!, durationMs });
      return result;
    } catch (error) {
      this.#events.emit({
        type: "failed",
        operation,
        ...about,
        durationMs: performance.now() - begin,
        error,
      });
      throw error;
    }
  }
}

export interface NetworkingConfig {
  readonly pluginDirs: readonly string[];
  readonly configDir: string;
  readonly maxConfigs: number;
  readonly interfacePrefix: string;
  readonly networks: readonly Network[];
}

type Outcomes = readonly PromiseSettledResult<Result>[];

const atOnce = (
  networks: readonly Network[],
  attach: (network: Network) => Promise<Result>,
): Promise<Outcomes> => Promise.allSettled(networks.map(async (network) => attach(network)));

/** None after one that failed: the outcomes end with it. */
async function inTurn(
  networks: readonly Network[],
  attach: (network: Network) => Promise<Result>,
): Promise<Outcomes> {
  const outcomes: PromiseSettledResult<Result>[] = [];
  for (const network of networks) {
    const [outcome] = await atOnce([network], attach);
    outcomes.push(outcome!);
    if (outcome!.status === "rejected") break;
  }
  return outcomes;
}

const failuresOf = (networks: readonly Network[], outcomes: Outcomes): NetworkFailure[] =>
  outcomes.flatMap((outcome, i) =>
    outcome.status === "rejected" ? [{ network: networks[i]!.name, error: toCniError(outcome.reason) }] : [],
  );

function signalOf({ signal, timeoutMs }: OperationOptions): AbortSignal | undefined {
  if (timeoutMs === undefined) return signal;
  const limit = AbortSignal.timeout(timeoutMs);
  return signal === undefined ? limit : AbortSignal.any([signal, limit]);
}

/** The promise's outcome, or the signal's reason when that fires before. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
