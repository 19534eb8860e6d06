import { close } from "@tscni/sys";
import { bootTimeMs, pollReadable } from "@tscni/sys/net";
import { nextTurn } from "./runtime.ts";

/** However little there is to do, signals that came between two looks are noticed after this long. */
const longestWaitMs = 1000;

interface Timer {
  atMs: number;
  callback: () => void;
}

/**
 * One thread that waits for descriptors and for times, and calls back. It has a clock of its own, by which leases
 * are kept: milliseconds since the machine started, sleep included.
 */
export class Loop {
  readonly #watched = new Map<number, () => void>();
  /** Earliest first. */
  readonly #timers: Timer[] = [];
  readonly #retired: number[] = [];
  #fds: number[] | undefined;
  #stopped = false;

  now(): number {
    return bootTimeMs();
  }

  /** Calls back whenever the descriptor has something to read, or its other end is gone. */
  watch(fd: number, callback: () => void): void {
    this.#watched.set(fd, callback);
    this.#fds = undefined;
  }

  unwatch(fd: number): void {
    this.#watched.delete(fd);
    this.#fds = undefined;
  }

  /** Watches it no more, and closes it when there is time: the kernel takes 20 ms for a packet socket. */
  retire(fd: number): void {
    this.unwatch(fd);
    this.#retired.push(fd);
  }

  /** Calls back once; returns what takes that back. */
  at(atMs: number, callback: () => void): () => void {
    const timer = { atMs, callback };
    const later = this.#timers.findIndex((other) => other.atMs > atMs);
    this.#timers.splice(later < 0 ? this.#timers.length : later, 0, timer);
    return () => {
      const index = this.#timers.indexOf(timer);
      if (index >= 0) this.#timers.splice(index, 1);
    };
  }

  /** Makes `run` return. */
  stop(): void {
    this.#stopped = true;
  }

  async run(): Promise<void> {
    while (!this.#stopped) {
      await nextTurn();
      this.#fds ??= [...this.#watched.keys()];
      const ready = pollReadable(this.#fds, this.#waitMs());
      for (const fd of ready) this.#watched.get(fd)?.();
      this.#fireTimers();
      const idle = ready.length === 0 ? this.#retired.pop() : undefined;
      if (idle !== undefined) close(idle);
    }
  }

  #waitMs(): number {
    if (this.#stopped || this.#retired.length > 0) return 0;
    const first = this.#timers[0];
    if (first === undefined) return longestWaitMs;
    return Math.ceil(Math.min(longestWaitMs, Math.max(0, first.atMs - this.now())));
  }

  #fireTimers(): void {
    const now = this.now();
    while (this.#timers.length > 0 && this.#timers[0]!.atMs <= now) this.#timers.shift()!.callback();
  }
}

/** What was waited for is not wanted any more. */
export class Cancelled extends Error {
  override readonly name = "Cancelled";
}

/** The one who waits: for a time, until something happens, or until he is told to give up. */
export class Waiter {
  readonly #loop: Loop;
  #wake: (() => void) | undefined;
  #cancelled = false;

  constructor(loop: Loop) {
    this.#loop = loop;
  }

  /** Ends the waiting that goes on now, if any. */
  wake(): void {
    this.#wake?.();
  }

  /** Makes what waits now, and whoever tries to wait later, throw Cancelled. */
  cancel(): void {
    this.#cancelled = true;
    this.wake();
  }

  get cancelled(): boolean {
    return this.#cancelled;
  }

  /** Waits until the time (Infinity: for ever) or until `wake`. Throws Cancelled. */
  async until(atMs: number): Promise<void> {
    if (!this.#cancelled)
      await new Promise<void>((resolve) => {
        const stopTimer = atMs === Number.POSITIVE_INFINITY ? () => {} : this.#loop.at(atMs, resolve);
        this.#wake = () => {
          stopTimer();
          resolve();
        };
      });
    this.#wake = undefined;
    if (this.#cancelled) throw new Cancelled("cancelled");
  }
}
