import { close, isErrno } from "@tscni/sys";
import { acceptNow, readNow, sendNow } from "@tscni/sys/net";
import { CniError, ErrorCode, toCniError } from "@tscni/types";
import { type Answer, maxLineBytes, type Request } from "../protocol.ts";
import type { OnHangUp } from "./leases.ts";
import type { Loop } from "./loop.ts";
import type { Log } from "./trace.ts";

type Handler = (request: Request, onHangUp: OnHangUp) => Promise<Answer>;

/** Accepts plugins at a listening socket: a line in, a line out, and the connection is closed. */
export function serve(loop: Loop, listener: number, handler: Handler, log: Log): void {
  const accept = () => {
    try {
      for (;;) new Connection(loop, acceptNow(listener), handler, log);
    } catch (error) {
      if (isErrno(error, "EAGAIN")) return;
      // Out of descriptors, say: those who wait are accepted later.
      log(`cannot accept a plugin: ${toCniError(error).message}`);
      loop.unwatch(listener);
      loop.at(loop.now() + retryMs, () => loop.watch(listener, accept));
    }
  };
  loop.watch(listener, accept);
}

const retryMs = 500;

/** How long somebody may take to read his answer. */
const patienceMs = 10_000;
const pauseMs = 5;

class Connection {
  readonly #loop: Loop;
  readonly #fd: number;
  readonly #handler: Handler;
  readonly #log: Log;
  #input: Uint8Array[] = [];
  #length = 0;
  #asked = false;
  #closed = false;
  #hungUp: (() => void) | undefined;

  constructor(loop: Loop, fd: number, handler: Handler, log: Log) {
    this.#loop = loop;
    this.#fd = fd;
    this.#handler = handler;
    this.#log = log;
    loop.watch(fd, () => this.#readable());
  }

  /** More of the request, or its end; after the request, only the end is of interest. */
  #readable(): void {
    const buffer = new Uint8Array(8 << 10);
    let count = 0;
    try {
      count = readNow(this.#fd, buffer);
    } catch (error) {
      if (isErrno(error, "EAGAIN")) return;
    }
    if (count === 0) {
      this.#close();
      this.#hungUp?.();
    } else if (!this.#asked) {
      this.#take(buffer.subarray(0, count));
    }
  }

  #take(piece: Uint8Array): void {
    this.#input.push(piece);
    this.#length += piece.length;
    if (piece.at(-1) === 0x0a) {
      this.#asked = true;
      void this.#respond();
    } else if (this.#length > maxLineBytes) this.#close();
  }

  async #respond(): Promise<void> {
    let answer: Answer;
    try {
      const request = this.#request();
      answer = await this.#handler(request, (callback) => {
        this.#hungUp = callback;
      });
    } catch (error) {
      const failure = toCniError(error);
      this.#log(`answering with an error: ${failure.message}`);
      answer = { error: failure.toObject() };
    }
    this.#hungUp = undefined;
    if (!this.#closed)
      this.#write(new TextEncoder().encode(`${JSON.stringify(answer)}\n`), this.#loop.now() + patienceMs);
  }

  #request(): Request {
    const bytes = new Uint8Array(this.#length);
    let at = 0;
    for (const piece of this.#input) {
      bytes.set(piece, at);
      at += piece.length;
    }
    try {
      return JSON.parse(new TextDecoder().decode(bytes)) as Request;
    } catch {
      throw new CniError(ErrorCode.DecodingFailure, "the request is not JSON");
    }
  }

  #write(data: Uint8Array, untilMs: number): void {
    if (this.#closed) return;
    let sent = 0;
    try {
      sent = sendNow(this.#fd, data);
    } catch (error) {
      if (!isErrno(error, "EAGAIN")) this.#close();
    }
    if (this.#closed) return;
    if (sent === data.length || this.#loop.now() > untilMs) this.#close();
    else this.#loop.at(this.#loop.now() + pauseMs, () => this.#write(data.subarray(sent), untilMs));
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#loop.unwatch(this.#fd);
    close(this.#fd);
  }
}
