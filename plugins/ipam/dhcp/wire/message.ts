import type { Ipv4 } from "./ipv4.ts";
import { decodeOptions, encodeOptions, Malformed, Option, type Options } from "./options.ts";

/** The kinds of message, option 53. RFC 2132 section 9.6. */
export const MessageType = {
  Discover: 1,
  Offer: 2,
  Request: 3,
  Decline: 4,
  Ack: 5,
  Nak: 6,
  Release: 7,
  Inform: 8,
} as const;

/** The name of a kind of message, as logs have it. */
export const typeName = (type: number): string =>
  Object.entries(MessageType)
    .find(([, value]) => value === type)?.[0]
    .toUpperCase() ?? `message of type ${type}`;

/** A DHCP message, RFC 2131 section 2, on Ethernet. */
export interface Message {
  /** Whether a server sent it. */
  reply: boolean;
  /** Chosen by the client, to know its answers by. */
  xid: number;
  /** Seconds since the client began. */
  secs: number;
  /** Whether answers are to be broadcast. */
  broadcast: boolean;
  /** The client's address, once it has one. */
  ciaddr: Ipv4;
  /** The address for the client. */
  yiaddr: Ipv4;
  giaddr: Ipv4;
  /** The client's hardware address, six bytes. */
  chaddr: Uint8Array;
  /** All but the type. */
  options: Options;
  /** MessageType */
  type: number;
}

/** Where the parts are; the options follow the magic cookie. */
const At = {
  secs: 8,
  flags: 10,
  ciaddr: 12,
  yiaddr: 16,
  giaddr: 24,
  chaddr: 28,
  sname: 44,
  file: 108,
  cookie: 236,
};
const cookie = 0x63825363;
const optionsAt = At.cookie + 4;
/** What RFC 1542 section 2.1 has relays expect at least. */
const minimumLength = 300;
const [bootRequest, bootReply, ethernet, macLength] = [1, 2, 1, 6];

export function encodeMessage(message: Message): Uint8Array {
  const options = encodeOptions(
    new Map([[Option.MessageType, Uint8Array.of(message.type)], ...message.options]),
  );
  const bytes = new Uint8Array(Math.max(minimumLength, optionsAt + options.length));
  const view = new DataView(bytes.buffer);
  bytes.set([message.reply ? bootReply : bootRequest, ethernet, macLength]);
  view.setUint32(4, message.xid);
  view.setUint16(At.secs, Math.min(message.secs, 0xffff));
  view.setUint16(At.flags, message.broadcast ? 0x8000 : 0);
  view.setUint32(At.ciaddr, message.ciaddr);
  view.setUint32(At.yiaddr, message.yiaddr);
  view.setUint32(At.giaddr, message.giaddr);
  bytes.set(message.chaddr, At.chaddr);
  view.setUint32(At.cookie, cookie);
  bytes.set(options, optionsAt);
  return bytes;
}

/** Throws Malformed for what is not a DHCP message for Ethernet. */
export function decodeMessage(bytes: Uint8Array): Message {
  if (bytes.length < optionsAt) throw new Malformed(`${bytes.length} bytes are too few for a DHCP message`);
  const [op, hardware, hardwareLength] = bytes;
  if (op !== bootRequest && op !== bootReply) throw new Malformed(`op is ${op}`);
  if (hardware !== ethernet || hardwareLength !== macLength)
    throw new Malformed(`hardware type ${hardware} with addresses of ${hardwareLength} bytes`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (view.getUint32(At.cookie) !== cookie) throw new Malformed("no magic cookie: BOOTP, not DHCP");
  const file = bytes.subarray(At.file, At.cookie);
  const options = decodeOptions(bytes.subarray(optionsAt), file, bytes.subarray(At.sname, At.file));
  const type = options.get(Option.MessageType);
  if (type?.length !== 1) throw new Malformed("no message type");
  options.delete(Option.MessageType);
  return {
    reply: op === bootReply,
    xid: view.getUint32(4),
    secs: view.getUint16(At.secs),
    broadcast: (view.getUint16(At.flags) & 0x8000) !== 0,
    ciaddr: view.getUint32(At.ciaddr),
    yiaddr: view.getUint32(At.yiaddr),
    giaddr: view.getUint32(At.giaddr),
    chaddr: bytes.slice(At.chaddr, At.chaddr + macLength),
    options,
    type: type[0]!,
  };
}
