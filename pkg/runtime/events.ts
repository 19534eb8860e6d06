import type { NetworkFailure, NetworkingError } from "./errors.ts";
import type { Network } from "./networks.ts";
import type { SetupResult } from "./result.ts";

/** What happened, as it happened. */
export type NetworkingEvent =
  | { type: "setup"; containerId: string; durationMs: number; result: SetupResult }
  | { type: "removed"; containerId: string; durationMs: number }
  | {
      type: "failed";
      operation: "setup" | "remove" | "check" | "gc";
      containerId?: string;
      durationMs: number;
      error: unknown;
    }
  /** A failed setup was taken back; `failures` tells what could not be. */
  | { type: "rolled-back"; containerId: string; failures: readonly NetworkFailure[] }
  /** What `status` found is not what it found before. */
  | { type: "status"; ready: true }
  | { type: "status"; ready: false; error: NetworkingError }
  /** Other networks are in force now. */
  | { type: "networks"; networks: readonly Network[] }
  /** The config folder changed to something that can't be used; the networks of before stay. */
  | { type: "config-broken"; error: NetworkingError }
  /** A plugin's stderr, or a warning of the library. */
  | { type: "log"; text: string };

export type Listener = (event: NetworkingEvent) => void;

/** Tells those who listen. A listener that throws does not reach what it was told of. */
export class Events {
  readonly #listeners = new Set<Listener>();

  /** Returns what ends the subscription. */
  subscribe(listener: Listener): () => void {
    const own: Listener = (event) => listener(event);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  emit(event: NetworkingEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  /**
   * Events from this call on, until the signal fires or the loop is left. One that reads slower than they come misses the
   * oldest beyond `capacity`.
   */
  stream(signal?: AbortSignal, capacity = 1000): AsyncIterableIterator<NetworkingEvent, undefined> {
    const queue: NetworkingEvent[] = [];
    const readers: ((result: IteratorResult<NetworkingEvent, undefined>) => void)[] = [];
    const done: IteratorResult<NetworkingEvent, undefined> = { done: true, value: undefined };
    let ended = signal?.aborted ?? false;
    const unsubscribe = ended
      ? () => {}
      : this.subscribe((value) => {
          const reader = readers.shift();
          if (reader) return reader({ done: false, value });
          queue.push(value);
          if (queue.length > capacity) queue.shift();
        });
    const end = () => {
      ended = true;
      queue.length = 0;
      unsubscribe();
      signal?.removeEventListener("abort", end);
      for (const reader of readers.splice(0)) reader(done);
    };
    signal?.addEventListener("abort", end, { once: true });
    return {
      next() {
        const value = queue.shift();
        if (value !== undefined) return Promise.resolve({ done: false, value });
        return ended ? Promise.resolve(done) : new Promise((resolve) => readers.push(resolve));
      },
      return() {
        end();
        return Promise.resolve(done);
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }
}
