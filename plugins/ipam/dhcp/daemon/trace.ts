/** Writes a line to where the daemon's lines go. */
export type Log = (line: string) => void;

/** What happened on a link while a client waited: for the log at once, and for the error if nothing comes of it. */
export class Trace {
  readonly #log: Log;
  readonly #name: string;
  readonly #sent = new Map<string, number>();
  readonly #ignored = new Map<string, number>();

  constructor(log: Log, name: string) {
    this.#log = log;
    this.#name = name;
  }

  log(text: string): void {
    this.#log(`${this.#name}: ${text}`);
  }

  sent(what: string, where: string): void {
    count(this.#sent, what);
    this.log(`sent ${what} ${where}`);
  }

  /** A packet that is not what is waited for. A flood of them is one line. */
  ignored(reason: string): void {
    if (count(this.#ignored, reason) === 1) this.log(`ignored a packet: ${reason}`);
  }

  /** What was sent and what came back, in one sentence. */
  summary(): string {
    const sent = listOf(this.#sent) || "nothing";
    const ignored = listOf(this.#ignored);
    return `sent ${sent}; ${ignored ? `ignored ${ignored}` : "no DHCP packet came back"}`;
  }
}

/** Reasons are limited in number, too: they hold values that others send. */
const mostReasons = 20;

function count(counts: Map<string, number>, key: string): number {
  const known = counts.has(key) || counts.size < mostReasons ? key : "others";
  const value = (counts.get(known) ?? 0) + 1;
  counts.set(known, value);
  return value;
}

const listOf = (counts: Map<string, number>): string =>
  [...counts].map(([what, times]) => (times === 1 ? what : `${times} × ${what}`)).join(", ");
