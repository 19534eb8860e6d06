import { findPlugin, invokePlugin, pluginVersions } from "@tscni/invoke";
import { type Attachment, type CacheProblem, Libcni } from "@tscni/libcni";
import { messageOf } from "@tscni/types";
import { listed, verifyContainer, verifyLiving, verifyNetns } from "./arguments.ts";
import { runtimeConfOf } from "./container.ts";
import { failed, failureOf, isNetworkingError, NetworkingError } from "./errors.ts";
import { Events, type Listener, type NetworkingEvent } from "./events.ts";
import { Gate } from "./gate.ts";
import { collectGarbage, type GarbageReport, type Living } from "./gc.ts";
import { loadNetworks, type Network, type NetworkSource } from "./networks.ts";
import {
  type CheckOptions,
  defaults,
  type GcOptions,
  type NetworkingOptions,
  type OperationOptions,
  type RemoveOptions,
  type SetupOptions,
  signalOf,
} from "./options.ts";
import { removeAttachments, takeBack } from "./remove.ts";
import { type SetupResult, setupResultOf } from "./result.ts";
import { attach } from "./setup.ts";
import { askStatus, StatusRounds } from "./status.ts";
import { observe, observedExec } from "./telemetry.ts";
import { type WatchOptions, watchFolder } from "./watch.ts";

/** What a {@link Networking} works with. */
export interface NetworkingConfig {
  readonly pluginDirs: readonly string[];
  readonly configDir: string;
  readonly maxConfigs: number;
  readonly interfacePrefix: string;
  readonly networks: readonly Network[];
}

/**
 * The networks of a program that starts containers: loads them, attaches containers to all of them and takes these off
 * again, and knows whether networking is ready. Throws {@link NetworkingError}, or the reason of a signal that fired before
 * the operation's turn had come.
 */
export class Networking {
  readonly #options: typeof defaults;
  readonly #libcni: Libcni;
  readonly #gate = new Gate();
  readonly #events = new Events();
  readonly #rounds = new StatusRounds((networks, signal) => this.#askStatus(networks, signal));
  /** Containers whose setup is waiting or on its way, an entry each. */
  readonly #settingUp: string[] = [];
  #networks: readonly Network[] = [];
  /** What was told last of being ready. */
  #told: string | undefined;

  constructor({ exec, ...options }: NetworkingOptions = {}) {
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    this.#options = { ...defaults, ...Object.fromEntries(given) };
    this.#libcni = new Libcni({
      path: this.#options.pluginDirs,
      cacheDir: this.#options.cacheDir,
      timeoutMs: this.#options.pluginTimeoutMs,
      log: (text) => this.#events.emit({ type: "log", text }),
      exec: observedExec(exec ?? { find: findPlugin, run: invokePlugin, versions: pluginVersions }),
    });
  }

  /** The networks in force. */
  get networks(): readonly Network[] {
    return this.#networks;
  }

  /** What is in force, for those who show it; {@link crictlConfig} has it in go-cni's shape. */
  get config(): NetworkingConfig {
    const { pluginDirs, configDir, maxConfigs, interfacePrefix } = this.#options;
    return { pluginDirs, configDir, maxConfigs, interfacePrefix, networks: this.#networks };
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
   * back, unless `rollback` is false; what the container had before stays. Throws `setup-failed` with what each network said.
   */
  async setup(id: string, netns: string, options: SetupOptions = {}): Promise<SetupResult> {
    verifyContainer(id, options);
    verifyNetns(netns);
    this.verifyLoaded();
    this.#settingUp.push(id);
    try {
      return await this.#setup(id, netns, options);
    } finally {
      this.#settingUp.splice(this.#settingUp.indexOf(id), 1);
    }
  }

  #setup(id: string, netns: string, options: SetupOptions): Promise<SetupResult> {
    const networks = this.#networks;
    return this.#observed("setup", id, options, async (signal) => {
      const { results, failures, touched } = await attach(
        this.#libcni,
        { id, netns },
        networks,
        options,
        signal,
      );
      try {
        if (failures.length > 0)
          throw failed("setup-failed", `container ${id} could not be attached`, failures);
        return setupResultOf(results, `${this.#options.interfacePrefix}0`);
      } catch (error) {
        if (options.rollback ?? true) await this.#takeBack({ id, netns }, touched, options);
        throw error;
      }
    });
  }

  /**
   * Takes a container off every network, past failures, also off those that it was attached to by a config that was changed
   * or is gone by now. Without `netns` it is the one of the setup; "" says that the namespace is gone. What is not attached
   * is fine. A signal that has fired before it is called does not count. Throws `remove-failed` with every error.
   */
  async remove(id: string, netns?: string, options: RemoveOptions = {}): Promise<void> {
    verifyContainer(id, options);
    const networks = this.#networks;
    // Many clean up with the signal that ended the work; a DEL that is not tried leaves an address behind.
    const { signal: given, ...others } = options;
    const timely = given === undefined || given.aborted ? others : options;
    await this.#observed("remove", id, timely, async (signal) => {
      const failures = await removeAttachments(this.#libcni, { id, netns }, networks, options, signal);
      if (failures.length > 0)
        throw failed("remove-failed", `container ${id} could not be removed`, failures);
    });
  }

  /** Whether a container's attachments are as they were made. Throws `check-failed` at the first that is not. */
  async check(id: string, netns: string, options: CheckOptions = {}): Promise<void> {
    verifyContainer(id, options);
    verifyNetns(netns);
    this.verifyLoaded();
    const networks = this.#networks;
    await this.#observed("check", id, options, async (signal) => {
      for (const network of networks) {
        try {
          signal?.throwIfAborted();
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
    try {
      this.verifyLoaded();
    } catch (error) {
      this.#tellStatus(error as NetworkingError);
      throw error;
    }
    await this.#rounds.join(this.#networks, signalOf(options));
  }

  async #askStatus(networks: readonly Network[], signal: AbortSignal): Promise<void> {
    const tell = (error?: NetworkingError) => {
      if (!signal.aborted && networks === this.#networks) this.#tellStatus(error);
    };
    try {
      await observe("status", {}, () => askStatus(this.#libcni, networks, signal));
      tell();
    } catch (error) {
      tell(error as NetworkingError);
      throw error;
    }
  }

  /** Once for each change: who polls every few seconds would drown the rest. */
  #tellStatus(error: NetworkingError | undefined): void {
    const plugins = error?.failures.map((failure) => [failure.network, failure.plugin, failure.error.code]);
    const now = JSON.stringify([error?.code, plugins]);
    if (now === this.#told) return;
    this.#told = now;
    this.#events.emit(
      error === undefined ? { type: "status", ready: true } : { type: "status", ready: false, error },
    );
  }

  /**
   * Takes away everything of containers that are not among the living: attachments in the cache, also those of networks
   * whose config is gone, and what the plugins find beside. Waits for operations on the way, and they for it. A function that
   * tells the living is called when nothing else is on its way; a list may be out of date by then, so that containers whose
   * setup was not finished when `gc` was called are kept, too. Throws `gc-failed` with every error, or what the function throws.
   */
  async gc(living: Living, options: GcOptions = {}): Promise<GarbageReport> {
    const ask = typeof living === "function" ? living : listed(living);
    // Whoever made the list may not have known of these.
    const young = [...this.#settingUp];
    return this.#observed("gc", undefined, options, async (signal) => {
      const keep = [...(await ask())];
      verifyLiving(keep);
      return collectGarbage(this.#libcni, this.#networks, [...keep, ...young], options, signal);
    });
  }

  /**
   * What is attached, by the cache, and the files there that can't be read. Of one container if its id is given. Throws
   * `read-failed`.
   */
  attachments(id?: string): { attachments: Attachment[]; problems: CacheProblem[] } {
    if (id !== undefined) verifyContainer(id);
    try {
      return this.#libcni.readCache(id);
    } catch (error) {
      throw new NetworkingError("read-failed", messageOf(error), { cause: error });
    }
  }

  /** Tells of everything that happens from now on; returns what ends that. */
  subscribe(listener: Listener): () => void {
    return this.#events.subscribe(listener);
  }

  /** The same as a stream, until the signal fires or the loop over it is left. */
  events(signal?: AbortSignal): AsyncIterableIterator<NetworkingEvent, undefined> {
    return this.#events.stream(signal);
  }

  /** With a time limit of its own: the signal that stopped the setup must not stop this. */
  async #takeBack(
    container: { id: string; netns: string },
    networks: readonly Network[],
    options: SetupOptions,
  ): Promise<void> {
    const { rollbackTimeoutMs: timeoutMs } = this.#options;
    const limit = signalOf({ timeoutMs });
    const failures = await takeBack(this.#libcni, container, networks, options, limit);
    this.#events.emit({ type: "rolled-back", containerId: container.id, failures });
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
      const durationMs = performance.now() - begin;
      this.#events.emit({ type: "failed", operation, ...about, durationMs, error });
      throw error;
    }
  }
}
