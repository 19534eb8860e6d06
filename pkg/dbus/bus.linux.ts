import { close, environmentVariable, isErrno, read, SysError, statIfPresent, waitReadable } from "@tscni/sys";
import { connectUnix, sendNow } from "@tscni/sys/net";
import { messageOf } from "@tscni/types";
import { socketPathOf, standardBusAddress } from "./address.ts";
import { DbusError } from "./error.ts";
import type { Value } from "./marshal.ts";
import { decodeMessage, ERROR, encodeCall, type Message, type MethodCall, messageBytes } from "./message.ts";

/** How long a method may take: what libdbus grants by default. A firewalld that reloads takes seconds. */
const defaultTimeoutMs = 25_000;

const busName = "org.freedesktop.DBus";

/**
 * A connection to the system bus: one call at a time, each waiting for its reply. Whatever goes wrong is a DbusError.
 */
export class Bus {
  readonly #fd: number;
  readonly #timeoutMs: number;
  #received = new Uint8Array(0);
  #serial = 0;

  /**
   * Takes over a connected socket: authenticates and says hello, which a bus wants first. All of it goes out at once,
   * as systemd's library does it, since each answer that is waited for costs two changes of process.
   */
  constructor(fd: number, timeoutMs = defaultTimeoutMs) {
    this.#fd = fd;
    this.#timeoutMs = timeoutMs;
    try {
      this.#exchange({ ...onBus, member: "Hello", args: [] }, true);
    } catch (error) {
      close(fd);
      throw error;
    }
  }

  /** Calls a method and returns its values. Throws DbusError with the error's name and what the callee says. */
  call(call: MethodCall): Value[] {
    return this.#exchange(call, false);
  }

  #exchange(call: MethodCall, authenticate: boolean): Value[] {
    const serial = ++this.#serial;
    const deadline = Date.now() + this.#timeoutMs;
    const what = `${call.interface}.${call.member}`;
    return whole(what, () => {
      if (authenticate) this.#send(new TextEncoder().encode(authentication));
      this.#send(encodeCall(serial, call));
      if (authenticate) this.#verifyWelcome(deadline);
      let reply: Message;
      do reply = decodeMessage(this.#nextMessage(deadline));
      while (reply.replySerial !== serial);
      if (reply.type !== ERROR) return reply.body;
      const text = typeof reply.body[0] === "string" ? reply.body[0] : "";
      throw new DbusError(reply.errorName, `${what}: ${text || reply.errorName}`);
    });
  }

  /** Whether some program owns a name on the bus now. */
  hasOwner(name: string): boolean {
    return this.call({ ...onBus, member: "NameHasOwner", args: [name] })[0] === true;
  }

  [Symbol.dispose](): void {
    close(this.#fd);
  }

  #verifyWelcome(deadline: number): void {
    let line: string;
    do line = this.#nextLine(deadline);
    while (line === "DATA");
    if (!line.startsWith("OK ")) throw new DbusError("", `the D-Bus system bus refuses us: ${line}`);
  }

  #send(bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length; ) done += sendNow(this.#fd, bytes.subarray(done));
  }

  #nextLine(deadline: number): string {
    for (;;) {
      const end = this.#received.indexOf(10);
      if (end >= 0) return new TextDecoder().decode(this.#take(end + 1)).trimEnd();
      this.#receive(deadline);
    }
  }

  #nextMessage(deadline: number): Uint8Array {
    for (;;) {
      const length = messageBytes(this.#received);
      if (length !== undefined && this.#received.length >= length) return this.#take(length);
      this.#receive(deadline);
    }
  }

  #take(length: number): Uint8Array {
    const taken = this.#received.slice(0, length);
    this.#received = this.#received.slice(length);
    return taken;
  }

  #receive(deadline: number): void {
    const left = deadline - Date.now();
    if (left <= 0 || !waitReadable(this.#fd, left))
      throw new DbusError("", `no answer within ${this.#timeoutMs / 1000} seconds`);
    const chunk = new Uint8Array(4096);
    const count = read(this.#fd, chunk);
    if (count === 0) throw new DbusError("", "the D-Bus system bus closed the connection");
    const longer = new Uint8Array(this.#received.length + count);
    longer.set(this.#received);
    longer.set(chunk.subarray(0, count), this.#received.length);
    this.#received = longer;
  }
}

/**
 * SASL EXTERNAL without a name: who we are, the bus asks the kernel.
 * https://dbus.freedesktop.org/doc/dbus-specification.html#auth-protocol
 */
const authentication = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n";

const onBus = { destination: busName, path: "/org/freedesktop/DBus", interface: busName };

/** Does a step, whose failure of any kind comes out as a DbusError that names it. */
function whole<T>(what: string, step: () => T): T {
  try {
    return step();
  } catch (error) {
    if (error instanceof DbusError && error.error !== "") throw error;
    throw new DbusError("", `${what}: ${messageOf(error)}`);
  }
}

/**
 * Connects to the system bus, where DBUS_SYSTEM_BUS_ADDRESS or the standard says it is. Undefined when there is none:
 * no socket, or nobody who listens. Throws DbusError when there is one that refuses us.
 */
export function openSystemBus(timeoutMs?: number): Bus | undefined {
  const path = socketPathOf(environmentVariable("DBUS_SYSTEM_BUS_ADDRESS") ?? standardBusAddress);
  if (path === undefined || statIfPresent(path) === undefined) return undefined;
  let fd: number;
  try {
    fd = connectUnix(path);
  } catch (error) {
    if (isErrno(error, "ECONNREFUSED", "ENOENT")) return undefined;
    if (error instanceof SysError)
      throw new DbusError("", `the D-Bus system bus at ${path}: ${error.message}`);
    throw error;
  }
  return new Bus(fd, timeoutMs);
}
