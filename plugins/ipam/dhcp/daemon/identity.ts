import type { Wishes } from "../options.ts";
import type { Attachment } from "../protocol.ts";
import type { Ipv4 } from "../wire/ipv4.ts";
import { type Message, MessageType } from "../wire/message.ts";
import { Option, type Options } from "../wire/options.ts";
import { macBytes } from "./port.ts";

/** Who a client is to servers, and what it wants of them. */
export interface Identity extends Wishes {
  mac: string;
  /** What the reference calls a client, less its type byte: the same container keeps its address. */
  id: string;
  /** Whether it hears only broadcasts before it has an address. */
  broadcast: boolean;
}

const longestId = 254;

export const clientIdOf = ({ network, containerId, ifName }: Attachment): string =>
  `${containerId}/${network}/${ifName}`.slice(0, longestId);

/** What a message holds beside who sends it. */
export interface Content {
  type: number;
  xid: number;
  secs?: number;
  ciaddr?: Ipv4;
  /** Options that this message needs, before those that every message has. */
  options?: readonly (readonly [code: number, value: Uint8Array])[];
}

/** Ethernet's, less the headers of IP and UDP. */
const maxMessageSize = 1472;

export function messageOf(
  identity: Identity,
  { type, xid, secs = 0, ciaddr = 0, options = [] }: Content,
): Message {
  const all: Options = new Map([[Option.ClientId, clientId(identity)], ...options]);
  // RFC 2131 table 5: what a client wishes is in none of these.
  const isWish = type !== MessageType.Release && type !== MessageType.Decline;
  if (isWish) addWishes(all, identity);
  return {
    reply: false,
    xid,
    secs,
    broadcast: identity.broadcast && isWish && ciaddr === 0,
    ciaddr,
    yiaddr: 0,
    giaddr: 0,
    chaddr: macBytes(identity.mac),
    options: all,
    type,
  };
}

function addWishes(options: Options, { provide, request }: Identity): void {
  for (const [code, text] of provide) options.set(code, new TextEncoder().encode(text));
  options.set(Option.MaxMessageSize, Uint8Array.of(maxMessageSize >> 8, maxMessageSize & 255));
  if (request.length > 0) options.set(Option.ParameterRequestList, Uint8Array.from(request));
}

/** Option 61: what the config provides, otherwise type 0 (no hardware address) and the id. RFC 2132 section 9.14. */
export function clientId({ provide, id }: Identity): Uint8Array {
  const given = provide.find(([code]) => code === Option.ClientId)?.[1];
  const text = new TextEncoder().encode(given ?? id);
  return given === undefined ? Uint8Array.of(0, ...text.subarray(0, longestId)) : text;
}
