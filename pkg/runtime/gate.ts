/**
 * Keeps apart what must not run at the same time (https://www.cni.dev/docs/spec/#lifecycle--ordering): operations on one
 * container wait for each other, and GC has everything to itself. Whoever waits is let in by order of arrival.
 */
export class Gate {
  readonly #inside = new Set<string>();
  #alone = false;
  readonly #waiting: { container: string | undefined; enter: () => void }[] = [];

  /** Runs `work` alone for its container; for undefined, alone altogether. A signal that fires stops only the waiting. */
  async run<T>(
    container: string | undefined,
    signal: AbortSignal | undefined,
    work: () => Promise<T>,
  ): Promise<T> {
    await this.#enter(container, signal);
    try {
      return await work();
    } finally {
      this.#leave(container);
    }
  }

  #enter(container: string | undefined, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const stop = () => {
        this.#waiting.splice(this.#waiting.indexOf(entry), 1);
        reject(signal?.reason);
        this.#admit();
      };
      const entry = {
        container,
        enter: () => {
          signal?.removeEventListener("abort", stop);
          resolve();
        },
      };
      signal?.addEventListener("abort", stop, { once: true });
      this.#waiting.push(entry);
      this.#admit();
    });
  }

  #leave(container: string | undefined): void {
    if (container === undefined) this.#alone = false;
    else this.#inside.delete(container);
    this.#admit();
  }

  /** Lets in whoever can go, in order; nobody passes one who waits for the same container, or for all to be gone. */
  #admit(): void {
    const ahead = new Set<string>();
    for (const entry of [...this.#waiting]) {
      const { container } = entry;
      if (this.#alone) return;
      if (container === undefined) {
        if (this.#inside.size > 0 || ahead.size > 0) return;
        this.#alone = true;
      } else {
        if (this.#inside.has(container) || ahead.has(container)) {
          ahead.add(container);
          continue;
        }
        this.#inside.add(container);
      }
      this.#waiting.splice(this.#waiting.indexOf(entry), 1);
      entry.enter();
    }
  }
}
