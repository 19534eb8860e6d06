import type { Namespace } from "@tscni/ns";
import { isErrno } from "@tscni/sys";
import { CniError, ErrorCode, messageOf as textOf } from "@tscni/types";
import { broadcastIp, type Ipv4, ipv4Bytes, ipv4Text, isHostAddress } from "../wire/ipv4.ts";
import { type Message, MessageType, typeName } from "../wire/message.ts";
import { Malformed, Option, uint32Option } from "../wire/options.ts";
import { openPlaceIfPresent, type Place } from "./container.ts";
import { type Content, clientId, type Identity, messageOf } from "./identity.ts";
import { type Lease, leaseOf } from "./lease.ts";
import type { Loop, Waiter } from "./loop.ts";
import {
  type Heard,
  type Listener,
  macText,
  openPacketPort,
  openUdpPort,
  type Port,
  type Route,
} from "./port.ts";
import { jitter, randomUint32 } from "./runtime.ts";
import type { Trace } from "./trace.ts";

/** How long to try, milliseconds: the daemon's flags of these names. */
export interface Limits {
  /** For a server that made an offer to confirm it. */
  timeoutMs: number;
  resendMaxMs: number;
  resendTimeoutMs: number;
}

/** The interface that a lease is for is not there any more. */
export class PlaceGone extends Error {}

/** What comes of asking to keep a lease: it, a refusal, or nothing until the time was over. */
export type Renewal = Lease | "refused" | undefined;

/** The client's side of DHCP for one interface, RFC 2131 section 4.4. One exchange at a time. */
export class Client {
  readonly #loop: Loop;
  readonly #waiter: Waiter;
  readonly #place: Place;
  readonly #identity: Identity;
  readonly #limits: Limits;
  readonly #trace: Trace;
  #xid = 0;
  #heard: Heard[] = [];

  constructor(loop: Loop, waiter: Waiter, place: Place, identity: Identity, limits: Limits, trace: Trace) {
    this.#loop = loop;
    this.#waiter = waiter;
    this.#place = place;
    this.#identity = identity;
    this.#limits = limits;
    this.#trace = trace;
  }

  /**
   * Finds a server and leases an address; with `only`, this one and no other, within the time of one request.
   * Throws CniError 11 when the time is over, PlaceGone, Cancelled.
   */
  acquire(only?: Ipv4): Promise<Lease> {
    return this.#withPort(openPacketPort, async (port) => {
      const startedMs = this.#loop.now();
      const { resendTimeoutMs, timeoutMs } = this.#limits;
      const deadlineMs = startedMs + (only === undefined ? resendTimeoutMs : timeoutMs);
      for (const delayMs of resendDelays(this.#limits.resendMaxMs)) {
        const nextMs = Math.min(this.#loop.now() + delayMs, deadlineMs);
        const secs = Math.floor((this.#loop.now() - startedMs) / 1000);
        const offer = await this.#discover(port, secs, nextMs, only);
        const lease = offer && (await this.#request(port, secs, offer, deadlineMs));
        if (lease) return lease;
        if (offer) await this.#waiter.until(nextMs); // refused or forgotten: not again at once
        if (this.#loop.now() >= deadlineMs) break;
      }
      throw new CniError(ErrorCode.TryAgainLater, "no more tries", { details: this.#trace.summary() });
    });
  }

  async #discover(port: Port, secs: number, untilMs: number, only?: Ipv4): Promise<Message | undefined> {
    const requested = only === undefined ? [] : ([[Option.RequestedAddress, ipv4Bytes(only)]] as const);
    this.#send(port, { type: MessageType.Discover, xid: this.#xid, secs, options: requested }, "to all");
    return this.#receive(untilMs, ({ message }) => {
      if (message.type !== MessageType.Offer) throw new Malformed(`${typeName(message.type)}, not OFFER`);
      const address = ipv4Text(message.yiaddr);
      if (uint32Option(message.options, Option.ServerId) === undefined)
        throw new Malformed(`OFFER of ${address} without a server identifier`);
      if (!isHostAddress(message.yiaddr)) throw new Malformed(`OFFER of ${address}`);
      if (only !== undefined && message.yiaddr !== only)
        throw new Malformed(`OFFER of ${address}, not ${ipv4Text(only)}`);
      return message;
    });
  }

  /** Takes an offer. Undefined when the server refuses or says nothing. */
  async #request(port: Port, secs: number, offer: Message, deadlineMs: number): Promise<Lease | undefined> {
    const server = uint32Option(offer.options, Option.ServerId)!;
    const untilMs = Math.min(this.#loop.now() + this.#limits.timeoutMs, deadlineMs);
    const options = [
      [Option.RequestedAddress, ipv4Bytes(offer.yiaddr)],
      [Option.ServerId, ipv4Bytes(server)],
    ] as const;
    const content = { type: MessageType.Request, xid: this.#xid, secs, options };
    for (const delayMs of resendDelays(this.#limits.resendMaxMs)) {
      const sentMs = this.#loop.now();
      this.#send(port, content, `for ${ipv4Text(offer.yiaddr)} of ${ipv4Text(server)}`);
      const answer = await this.#receive(Math.min(sentMs + delayMs, untilMs), (heard) =>
        this.#answerOf(heard, offer.yiaddr, server),
      );
      if (answer === "refused") return undefined;
      if (answer !== undefined) return this.#leaseOf(answer, sentMs);
      if (this.#loop.now() >= untilMs) return undefined;
    }
    return undefined;
  }

  #leaseOf({ message, sourceMac }: Heard, sentMs: number, before?: Lease): Lease {
    try {
      const lease = leaseOf(message, sentMs, before);
      return sourceMac === undefined ? lease : { ...lease, serverMac: macText(sourceMac) };
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      throw new CniError(ErrorCode.Internal, error.message, {
        details: `in the ACK of ${ipv4Text(message.yiaddr)}`,
      });
    }
  }

  /** Asks the server that gave the lease to prolong it, until it is time to ask all. Throws SysError, PlaceGone, Cancelled. */
  renew(lease: Lease): Promise<Renewal> {
    const addresses = { own: lease.address, server: lease.server };
    return this.#withPort(
      (loop, place, namespace, listener) => openUdpPort(loop, place, namespace, addresses, listener),
      (port) => this.#prolong(port, lease, lease.rebindAtMs!, `to ${ipv4Text(lease.server)}`),
    );
  }

  /** Asks any server to prolong the lease, until it is over. Throws SysError, PlaceGone, Cancelled. */
  rebind(lease: Lease): Promise<Renewal> {
    return this.#withPort(openPacketPort, (port) =>
      this.#prolong(port, lease, lease.expireAtMs!, "to all", { source: lease.address, target: broadcastIp }),
    );
  }

  async #prolong(port: Port, lease: Lease, untilMs: number, where: string, route?: Route): Promise<Renewal> {
    const shortestMs = retryMs(untilMs - this.#loop.now());
    for (;;) {
      const sentMs = this.#loop.now();
      const leftMs = untilMs - sentMs;
      if (leftMs <= 0) return undefined;
      const content = { type: MessageType.Request, xid: this.#xid, ciaddr: lease.address };
      this.#send(port, content, where, route);
      const answer = await this.#receive(
        sentMs + Math.min(leftMs, Math.max(leftMs / 2, shortestMs)),
        (heard) => this.#answerOf(heard, lease.address),
      );
      if (answer === "refused") return answer;
      if (answer !== undefined) return this.#leaseOf(answer, sentMs, lease);
    }
  }

  /** An ACK of the address or a NAK; from the server, if one is asked for by name. Throws Malformed for all else. */
  #answerOf(heard: Heard, address: Ipv4, server?: Ipv4): Heard | "refused" {
    const { type, options, yiaddr } = heard.message;
    if (type !== MessageType.Ack && type !== MessageType.Nak)
      throw new Malformed(`${typeName(type)}, not ACK`);
    const from = uint32Option(options, Option.ServerId);
    if (server !== undefined && from !== undefined && from !== server)
      throw new Malformed(`${typeName(type)} of ${ipv4Text(from)}, not ${ipv4Text(server)}`);
    if (type === MessageType.Nak) {
      const why = options.get(Option.Message);
      this.#trace.log(`refused (NAK)${why ? `: ${JSON.stringify(new TextDecoder().decode(why))}` : ""}`);
      return "refused";
    }
    if (yiaddr !== address) throw new Malformed(`ACK of ${ipv4Text(yiaddr)}, not ${ipv4Text(address)}`);
    return heard;
  }

  /** Sends, and takes a link that is down for a packet that was lost. */
  #send(port: Port, content: Content, where: string, route?: Route): void {
    try {
      port.send(messageOf(this.#identity, content), route);
      this.#trace.sent(typeName(content.type), where);
    } catch (error) {
      if (isErrno(error, "ENODEV", "ENXIO")) throw new PlaceGone(textOf(error));
      this.#trace.ignored(`could not send ${typeName(content.type)}: ${textOf(error)}`);
    }
  }

  /** What `accept` makes of the first packet that it does not find fault with; undefined at the time given. */
  async #receive<T>(untilMs: number, accept: (heard: Heard) => T): Promise<T | undefined> {
    for (;;) {
      for (let heard = this.#heard.shift(); heard !== undefined; heard = this.#heard.shift()) {
        try {
          return accept(heard);
        } catch (error) {
          if (!(error instanceof Malformed)) throw error;
          this.#trace.ignored(error.message);
        }
      }
      if (this.#loop.now() >= untilMs) return undefined;
      await this.#waiter.until(untilMs);
    }
  }

  async #withPort<T>(
    open: (loop: Loop, place: Place, namespace: Namespace, listener: Listener) => Port,
    work: (port: Port) => Promise<T>,
  ): Promise<T> {
    this.#xid = randomUint32();
    this.#heard = [];
    const port = this.#open(open);
    try {
      return await work(port);
    } finally {
      port.close();
    }
  }

  #open(open: (loop: Loop, place: Place, namespace: Namespace, listener: Listener) => Port): Port {
    const { netns, ifName } = this.#place;
    using namespace = openPlaceIfPresent(this.#place);
    if (namespace === undefined) throw new PlaceGone(`${ifName} in ${netns} is gone`);
    return open(this.#loop, this.#place, namespace, {
      heard: (heard) => this.#hear(heard),
      ignored: (reason) => this.#trace.ignored(reason),
    });
  }

  /** Keeps what is for us, for whoever waits. */
  #hear(heard: Heard): void {
    const { reply, xid, chaddr, options } = heard.message;
    const echoed = options.get(Option.ClientId);
    if (!reply) this.#trace.ignored("another client's request");
    else if (xid !== this.#xid) this.#trace.ignored("of another exchange (xid)");
    else if (macText(chaddr) !== this.#identity.mac) this.#trace.ignored("for another client (chaddr)");
    // RFC 6842
    else if (echoed && !sameBytes(echoed, clientId(this.#identity)))
      this.#trace.ignored("for another client (option 61)");
    else if (this.#heard.length < mostHeard) {
      this.#heard.push(heard);
      this.#waiter.wake();
    }
  }
}

/** More answers than this, not looked at yet, are a flood. */
const mostHeard = 64;

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, i) => byte === b[i]);

/** As the reference: four times 2 s, then 8 s and the double each time until `maxMs` is reached; each ± 1 s. */
export function* resendDelays(maxMs: number): Generator<number> {
  const fastMs = Math.min(2000, maxMs);
  const spreadMs = Math.min(1000, fastMs / 2);
  for (let i = 0; i < 4; i++) yield fastMs + spreadMs * jitter();
  for (let delayMs = Math.min(8000, maxMs); ; delayMs = Math.min(2 * delayMs, maxMs))
    yield delayMs + spreadMs * jitter();
}

/** RFC 2131 section 4.4.5 has a minute; where there is less time than four minutes, a quarter of it. */
const retryMs = (leftMs: number): number => Math.max(1000, Math.min(60_000, leftMs / 4));
