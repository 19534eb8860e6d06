import type { NetworkFailure, NetworkingError } from "./errors.ts";
import type { Network } from "./networks.ts";
import type { SetupResult } from "./result.ts";

/** What happened, as it happened. */
export type NetworkingEvent =
  | { type: "setup"; containerId: string; durationMs: number; result: SetupResult }
  | { type: "removed"; containerId: string; durationMs: number }
  | {
      type: "failed";
      operation: "setup" | "remove" | "check" | "status" | "gc";
      containerId?: string;
      durationMs: number;
      error: unknown;
    }
  /** A failed setup was taken back; `failures` tells what could not be. */
  | { type: "rolled-back"; containerId: string; failures: readonly NetworkFailure[] }
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
   * Events from now on, until the signal fires or the loop is left. One that reads slower than they come misses the oldest
   * beyond `capacity`.
   */
  async *stream(signal?: AbortSignal, capacity = 1000): AsyncGenerator<NetworkingEvent, void, undefined> {
    const queue: NetworkingEvent[] = [];
    let wake = () => {};
    const unsubscribe = this.subscribe((event) => {
      queue.push(event);
      if (queue.length > capacity) queue.shift();
      wake();
    });
    const stop = () => wake();
    signal?.addEventListener("abort", stop);
    try {
      while (!signal?.aborted) {
        const event = queue.shift();
        if (event !== undefined) yield event;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    } finally {
      unsubscribe();
      signal?.removeEventListener("abort", stop);
    }
  }
}
