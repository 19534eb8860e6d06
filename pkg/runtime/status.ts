import type { Libcni } from "@tscni/libcni";
import { toCniError } from "@tscni/types";
import { failed } from "./errors.ts";
import type { Network } from "./networks.ts";

/**
 * Asks every plugin of every network for its STATUS (https://www.cni.dev/docs/spec/#status-check-plugin-status), the
 * networks at once and the plugins of each in order; networks below 1.1.0 have no such verb and count as ready.
 * Throws `not-ready` with the first plugin of each network that says no.
 */
export async function askStatus(
  libcni: Libcni,
  networks: readonly Network[],
  signal: AbortSignal,
): Promise<void> {
  const outcomes = await Promise.all(networks.map((network) => firstFailure(libcni, network, signal)));
  const failures = outcomes.flatMap((failure) => failure ?? []);
  if (failures.length > 0) throw failed("not-ready", "networking is not ready", failures);
}

async function firstFailure(libcni: Libcni, { name, list }: Network, signal: AbortSignal) {
  for (const plugin of list.plugins) {
    try {
      await libcni.getStatusNetworkList({ ...list, plugins: [plugin] }, { signal });
    } catch (error) {
      return [{ network: name, plugin: plugin.type, error: toCniError(error) }];
    }
  }
  return undefined;
}

interface Round {
  networks: readonly Network[];
  answer: Promise<void>;
  callers: number;
  stop: AbortController;
}

/**
 * One round of questions for all callers that come while it is on its way. It ends when the last of them has given up,
 * so that a plugin which hangs once does not keep the next caller waiting; and a caller who comes after other networks were
 * loaded gets a round of their own.
 */
export class StatusRounds {
  readonly #ask: (networks: readonly Network[], signal: AbortSignal) => Promise<void>;
  #current: Round | undefined;

  constructor(ask: (networks: readonly Network[], signal: AbortSignal) => Promise<void>) {
    this.#ask = ask;
  }

  /** Throws what the round did, or the signal's reason when that fires before. */
  async join(networks: readonly Network[], signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#current?.networks !== networks) this.#current = this.#begin(networks);
    const round = this.#current;
    round.callers++;
    try {
      await unlessAborted(round.answer, signal);
    } finally {
      round.callers--;
      if (round.callers === 0) {
        this.#end(round);
        round.stop.abort();
      }
    }
  }

  #begin(networks: readonly Network[]): Round {
    const stop = new AbortController();
    const round: Round = { networks, stop, callers: 0, answer: this.#ask(networks, stop.signal) };
    const end = () => this.#end(round);
    round.answer.then(end, end);
    return round;
  }

  #end(round: Round): void {
    if (this.#current === round) this.#current = undefined;
  }
}

/** The promise's outcome, or the signal's reason when that fires before. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
