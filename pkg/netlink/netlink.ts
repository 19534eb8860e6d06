import {
  AF_NETLINK,
  bind,
  close,
  isErrno,
  MSG_PEEK,
  MSG_TRUNC,
  recv,
  SOCK_RAW,
  send,
  setSocketOption,
  socket,
  socketName,
  waitReadable,
} from "@tscni/sys";
import { cString, u32 } from "./codecs.ts";
import { type ExtendedAck, NetlinkError } from "./error.ts";
import { type Format, type Message, nameOf, type Requester, typeOf, type Verb } from "./message.ts";
import { Attributes, type AttributeValues, type Entries, type Fields, type FieldValues } from "./table.ts";
import { batchFormat } from "./tables/netfilter.ts";
import { Wire } from "./wire.ts";

// linux/netlink.h
const NETLINK_ROUTE = 0;
const NETLINK_NETFILTER = 12;
const SOL_NETLINK = 270;
const NETLINK_CAP_ACK = 10;
const NETLINK_EXT_ACK = 11;
const NETLINK_GET_STRICT_CHK = 12;
const NLMSG_ERROR = 2;
const NLMSG_DONE = 3;
const NLM_F_REQUEST = 1;
const NLM_F_ACK = 4;
const NLM_F_ECHO = 8;
const NLM_F_DUMP_INTR = 0x10;
const NLM_F_DUMP = 0x300;
const NLM_F_CAPPED = 0x100;
const NLM_F_ACK_TLVS = 0x200;
const HEADER = 16;

// sys/socket.h
const MSG_DONTWAIT = 0x40;

/** rtnetlink answers before sendto returns; whoever waits longer than this has met a bug. */
const ANSWER_TIMEOUT_MS = 10_000;
/** A dump that others' changes interrupt is begun anew this many times. */
const DUMP_ATTEMPTS = 32;
/** Requests sent at once: their acks must fit into the socket's receive buffer (208 KiB, a KiB each). */
const BATCH = 64;

/** enum nlmsgerr_attrs */
const ackAttributes = new Attributes(() => ({
  message: [1, cString],
  offset: [2, u32],
  missingType: [5, u32],
  missingNest: [6, u32],
}));

// Shared by all sockets: every call is synchronous and has decoded its answers when it returns. A page more
// than the 32 KiB that a dump fills at most, unless one object alone is larger; then the buffer grows.
const outgoing = new Wire(4 << 10);
const incoming = new Wire(36 << 10);

/** A request in flight, as its error will name it. */
interface Pending {
  sequence: number;
  name: string;
  subject: string;
}

/** Called for every message that answers a request; returns true when that was the last one. */
type Answer = (type: number, flags: number, sequence: number, from: number, to: number) => boolean;

/**
 * A netlink socket, rtnetlink's unless another protocol is asked for. It belongs to the network namespace of the thread that opened it and stays there,
 * wherever the thread goes. Requests are synchronous and throw NetlinkError when the kernel refuses them.
 */
export class Netlink implements Requester {
  #fd: number;
  readonly #port: number;
  #sequence = 0;

  constructor(protocol = NETLINK_ROUTE) {
    this.#fd = socket(AF_NETLINK, SOCK_RAW, protocol);
    try {
      // struct sockaddr_nl: family 2, pad 2, port 4, groups 4. Port 0: the kernel chooses one.
      const address = new Uint8Array(12);
      address[0] = AF_NETLINK;
      bind(this.#fd, address);
      this.#port = new DataView(socketName(this.#fd, 12).buffer).getUint32(4, true);
      for (const option of [NETLINK_CAP_ACK, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK]) this.#enable(option);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Twice does no harm. */
  close(): void {
    if (this.#fd >= 0) close(this.#fd);
    this.#fd = -1;
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Kernels before 4.20 lack strict checking; without these options errors are terser and dumps unfiltered. */
  #enable(option: number): void {
    try {
      setSocketOption(this.#fd, SOL_NETLINK, option, 1);
    } catch (error) {
      if (!isErrno(error, "ENOPROTOOPT")) throw error;
    }
  }

  /** Sends one request and waits for its ack. Throws NetlinkError. */
  request<F extends Fields, E extends Entries>(
    format: Format<F, E>,
    verb: Verb,
    flags: number,
    header: Partial<FieldValues<F>>,
    attributes: AttributeValues<E>,
    subject: string,
  ): void {
    const pending = this.#start(format, verb, flags | NLM_F_ACK, header, attributes, subject);
    this.#receive(pending.sequence, (type, flags, _sequence, from, to) => {
      if (type !== NLMSG_ERROR) return false;
      throwIfRefused(pending, flags, from, to);
      return true;
    });
  }

  /**
   * Sends one request with NLM_F_ECHO and returns the message that the kernel echoes: the object as it was made,
   * with its index. undefined where the kernel does not echo (links: before 6.2). Throws NetlinkError.
   */
  requestEcho<F extends Fields, E extends Entries>(
    format: Format<F, E>,
    verb: Verb,
    flags: number,
    header: Partial<FieldValues<F>>,
    attributes: AttributeValues<E>,
    subject: string,
  ): Message<F, E> | undefined {
    const pending = this.#start(format, verb, flags | NLM_F_ACK | NLM_F_ECHO, header, attributes, subject);
    let echo: Message<F, E> | undefined;
    this.#receive(pending.sequence, (type, flags, _sequence, from, to) => {
      if (type === typeOf(format, verb)) echo ??= decode(format, from, to);
      if (type !== NLMSG_ERROR) return false;
      throwIfRefused(pending, flags, from, to);
      return true;
    });
    return echo;
  }

  /** Asks for one object. Throws NetlinkError. */
  get<F extends Fields, E extends Entries>(
    format: Format<F, E>,
    header: Partial<FieldValues<F>>,
    attributes: AttributeValues<E>,
    subject: string,
  ): Message<F, E> {
    const pending = this.#start(format, "GET", 0, header, attributes, subject);
    let found: Message<F, E> | undefined;
    this.#receive(pending.sequence, (type, flags, _sequence, from, to) => {
      if (type === NLMSG_ERROR) throwIfRefused(pending, flags, from, to);
      else found = decode(format, from, to);
      return true;
    });
    if (found === undefined)
      throw new NetlinkError(EPROTO, pending.name, subject, { message: "empty answer" });
    return found;
  }

  /**
   * Asks for all objects that the header and attributes select. A dump that was interrupted by a change is
   * begun anew. Throws NetlinkError.
   */
  dump<F extends Fields, E extends Entries>(
    format: Format<F, E>,
    header: Partial<FieldValues<F>>,
    attributes: AttributeValues<E>,
    subject: string,
  ): Message<F, E>[] {
    for (let attempt = 0; attempt < DUMP_ATTEMPTS; attempt++) {
      const pending = this.#start(format, "GET", NLM_F_DUMP, header, attributes, subject);
      const found = this.#receiveDump(format, pending);
      if (found !== undefined) return found;
    }
    throw new NetlinkError(EINTR, nameOf(format, "GET"), subject, {
      message: `others changed the list during each of ${DUMP_ATTEMPTS} attempts to read it`,
    });
  }

  /**
   * The objects, or undefined when the list changed while it was read. Reads to the end whatever happens: the
   * kernel refuses another dump (EBUSY) before that.
   */
  #receiveDump<F extends Fields, E extends Entries>(
    format: Format<F, E>,
    pending: Pending,
  ): Message<F, E>[] | undefined {
    const found: Message<F, E>[] = [];
    let interrupted = false;
    let failure: unknown;
    this.#receive(pending.sequence, (type, flags, _sequence, from, to) => {
      if ((flags & NLM_F_DUMP_INTR) !== 0) interrupted = true;
      if (type === NLMSG_ERROR || type === NLMSG_DONE) {
        failure ??= refusal(pending, flags, from, to, type === NLMSG_DONE);
        return true;
      }
      try {
        found.push(decode(format, from, to));
      } catch (error) {
        failure ??= error;
      }
      return false;
    });
    if (failure !== undefined) throw failure;
    return interrupted ? undefined : found;
  }

  /**
   * Sends the requests that `fill` makes in as few system calls as possible. The kernel runs them in order and
   * goes on after one that fails. Returns for each request its error, or undefined.
   */
  batch(fill: (requests: Requester) => void): (NetlinkError | undefined)[] {
    const wire = new Wire(4 << 10);
    const outcomes: (NetlinkError | undefined)[] = [];
    let pending: Pending[] = [];
    const flush = () => {
      if (pending.length === 0) return;
      outcomes.push(...this.#sendBatch(wire, pending));
      pending = [];
      wire.at = 0;
    };
    fill({
      request: (format, verb, flags, header, attributes, subject) => {
        pending.push(this.#put(wire, format, verb, flags | NLM_F_ACK, header, attributes, subject));
        if (pending.length === BATCH) flush();
      },
    });
    flush();
    return outcomes;
  }

  /**
   * Sends requests of one of netfilter's subsystems (NFNL_SUBSYS_*) as a transaction: all are done, or none. They must
   * be few enough for one message. Throws the first NetlinkError.
   */
  transaction(subsystem: number, fill: (requests: Requester) => void): void {
    const wire = new Wire(1 << 10);
    const pending: Pending[] = [];
    const header = { resourceId: subsystem };
    this.#put(wire, batchFormat, "NEW", 0, header, {}, "begin");
    fill({
      request: (format, verb, flags, header, attributes, subject) => {
        pending.push(this.#put(wire, format, verb, flags | NLM_F_ACK, header, attributes, subject));
      },
    });
    const [first] = pending;
    if (first === undefined) return;
    this.#put(wire, batchFormat, "GET", 0, header, {}, "end");
    const failure = this.#sendBatch(wire, pending).find((error) => error !== undefined);
    if (failure !== undefined) throw failure;
  }

  #sendBatch(wire: Wire, pending: Pending[]): (NetlinkError | undefined)[] {
    const outcomes = new Array<NetlinkError | undefined>(pending.length).fill(undefined);
    let open = pending.length;
    this.#send(wire);
    this.#receive(pending[0]!.sequence, (type, flags, sequence, from, to) => {
      if (type !== NLMSG_ERROR) return false;
      const which = pending.findIndex((request) => request.sequence === sequence);
      if (which < 0) throw refusal({ sequence, name: "NFNL_BATCH", subject: "" }, flags, from, to);
      outcomes[which] = refusal(pending[which]!, flags, from, to);
      return --open === 0;
    });
    return outcomes;
  }

  /** Sends one request. */
  #start<F extends Fields, E extends Entries>(
    format: Format<F, E>,
    verb: Verb,
    flags: number,
    header: Partial<FieldValues<F>>,
    attributes: AttributeValues<E>,
    subject: string,
  ): Pending {
    outgoing.at = 0;
    const pending = this.#put(outgoing, format, verb, flags, header, attributes, subject);
    this.#send(outgoing);
    return pending;
  }

  /** Writes a message behind those that are there. */
  #put<F extends Fields, E extends Entries>(
    wire: Wire,
    format: Format<F, E>,
    verb: Verb,
    flags: number,
    header: Partial<FieldValues<F>>,
    attributes: AttributeValues<E>,
    subject: string,
  ): Pending {
    const start = wire.skip(HEADER);
    format.header.putPart(wire, header);
    wire.align();
    format.attributes.put(wire, attributes);
    const sequence = ++this.#sequence;
    // struct nlmsghdr: length 4, type 2, flags 2, sequence 4, port 4
    const { view } = wire;
    view.setUint32(start, wire.at - start, true);
    view.setUint16(start + 4, typeOf(format, verb), true);
    view.setUint16(start + 6, flags | NLM_F_REQUEST, true);
    view.setUint32(start + 8, sequence, true);
    view.setUint32(start + 12, this.#port, true);
    return { sequence, name: nameOf(format, verb), subject };
  }

  #send(wire: Wire): void {
    send(this.#fd, wire.bytes.subarray(0, wire.at));
  }

  /** Hands the answers to the requests from `first` to the latest to `answer`, until that returns true. */
  #receive(first: number, answer: Answer): void {
    for (;;) {
      const length = this.#receiveDatagram();
      const { view } = incoming;
      for (let at = 0; at + HEADER <= length; ) {
        const size = view.getUint32(at, true);
        if (size < HEADER || at + size > length) throw new RangeError(`netlink message of ${size} bytes`);
        const sequence = view.getUint32(at + 8, true);
        // Left over from a request that ended in an exception, or meant for somebody else.
        const ours = sequence >= first && sequence <= this.#sequence;
        if (ours && view.getUint32(at + 12, true) === this.#port) {
          const type = view.getUint16(at + 4, true);
          if (answer(type, view.getUint16(at + 6, true), sequence, at + HEADER, at + size)) return;
        }
        at += (size + 3) & ~3;
      }
    }
  }

  /** Receives one datagram whole and returns its length: its size is looked at before it is taken. */
  #receiveDatagram(): number {
    const size = this.#receiveNow(MSG_PEEK | MSG_TRUNC);
    if (size > incoming.bytes.length) incoming.grow(size);
    return this.#receiveNow(0);
  }

  #receiveNow(flags: number): number {
    for (;;) {
      try {
        return recv(this.#fd, incoming.bytes, flags | MSG_DONTWAIT);
      } catch (error) {
        if (!isErrno(error, "EAGAIN")) throw error;
        if (!waitReadable(this.#fd, ANSWER_TIMEOUT_MS)) throw new NetlinkError(ETIMEDOUT, "recv", "netlink");
      }
    }
  }
}

// asm-generic/errno-base.h, errno.h
const EINTR = 4;
const EPROTO = 71;
const ETIMEDOUT = 110;

/** Opens a socket to the network namespace of the calling thread. Throws SysError. */
export const openRoute = (): Netlink => new Netlink();

/** The same for nftables and connection tracking. Throws SysError EPROTONOSUPPORT where the kernel has no nfnetlink. */
export const openNetfilter = (): Netlink => new Netlink(NETLINK_NETFILTER);

/** The same, or undefined where the kernel has no netfilter netlink: then there is nothing that it could show. */
export function openNetfilterIfPresent(): Netlink | undefined {
  try {
    return openNetfilter();
  } catch (error) {
    if (isErrno(error, "EPROTONOSUPPORT", "EAFNOSUPPORT", "ESOCKTNOSUPPORT")) return undefined;
    throw error;
  }
}

function decode<F extends Fields, E extends Entries>(
  format: Format<F, E>,
  from: number,
  to: number,
): Message<F, E> {
  const behind = from + ((format.header.size + 3) & ~3);
  return {
    header: format.header.get(incoming, from, to),
    attributes: format.attributes.get(incoming, behind, to),
  };
}

function throwIfRefused(pending: Pending, flags: number, from: number, to: number, done = false): void {
  const error = refusal(pending, flags, from, to, done);
  if (error !== undefined) throw error;
}

/** The error in an NLMSG_ERROR or NLMSG_DONE, or undefined when it says that all went well. */
function refusal(
  { name, subject }: Pending,
  flags: number,
  from: number,
  to: number,
  done = false,
): NetlinkError | undefined {
  const errno = to - from < 4 ? 0 : -incoming.view.getInt32(from, true);
  if (errno <= 0) return undefined;
  let extended: ExtendedAck = {};
  if ((flags & NLM_F_ACK_TLVS) !== 0) {
    // In an error, behind the header of the refused request and, where that is not capped, its body.
    const echoed = done ? 0 : (flags & NLM_F_CAPPED) !== 0 ? HEADER : incoming.view.getUint32(from + 4, true);
    extended = ackAttributes.get(incoming, from + 4 + ((echoed + 3) & ~3), to);
  }
  return new NetlinkError(errno, name, subject, extended);
}
