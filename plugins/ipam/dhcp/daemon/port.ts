import type { Namespace } from "@tscni/ns";
import { AF_PACKET, bind, close, isErrno, SOCK_RAW, send, setSocketOption, socket } from "@tscni/sys";
import {
  AF_INET,
  attachFilter,
  type BpfInstruction,
  bindToDevice,
  enableAuxData,
  inetAddress,
  packetAddress,
  receivePacket,
  SO_REUSEADDR,
  SOCK_DGRAM,
  SOCK_NONBLOCK,
  SOL_SOCKET,
} from "@tscni/sys/net";
import { broadcastMac, decodeFrame, ETH_P_IP, encodeFrame } from "../wire/frame.ts";
import { broadcastIp, type Ipv4, ipv4Bytes } from "../wire/ipv4.ts";
import { decodeMessage, encodeMessage, type Message } from "../wire/message.ts";
import { Malformed } from "../wire/options.ts";
import type { Place } from "./container.ts";
import type { Loop } from "./loop.ts";

const [clientPort, serverPort] = [68, 67];

/** Where a message goes to, and from. By default from no address to all. */
export interface Route {
  source?: Ipv4;
  target?: Ipv4;
  targetMac?: Uint8Array;
}

/** A message that came in; who sent it. */
export interface Heard {
  message: Message;
  /** Absent when the kernel took care of that. */
  sourceMac?: Uint8Array;
}

/** What messages go out and come in by. */
export interface Port {
  /** Throws SysError. */
  send(message: Message, route?: Route): void;
  close(): void;
}

/** Called with every message that is one, and with the reason for what is none. */
export interface Listener {
  heard(heard: Heard): void;
  ignored(reason: string): void;
}

/** IPv4, UDP, no later fragment, destination port 68: all that a DHCP client wants to see (linux/filter.h). */
const dhcpReplies: readonly BpfInstruction[] = [
  [0x28, 0, 0, 12], // ldh [12]
  [0x15, 0, 8, ETH_P_IP], // jeq #ETH_P_IP
  [0x30, 0, 0, 23], // ldb [23]
  [0x15, 0, 6, 17], // jeq #IPPROTO_UDP
  [0x28, 0, 0, 20], // ldh [20]
  [0x45, 4, 0, 0x1fff], // jset #0x1fff
  [0xb1, 0, 0, 14], // ldxb 4*([14]&0xf)
  [0x48, 0, 0, 16], // ldh [x+16]
  [0x15, 0, 1, clientPort], // jeq #68
  [0x06, 0, 0, 0x40000], // ret
  [0x06, 0, 0, 0],
];

const largestFrame = 64 << 10;
// Shared: what comes in is decoded, and so copied, before the next is read.
const buffer = new Uint8Array(largestFrame);

/** At most this many packets in a row, so that a flood on one link does not keep the other leases waiting. */
const burst = 32;

/** A packet socket, which works without an address. Throws SysError. */
export function openPacketPort(loop: Loop, place: Place, namespace: Namespace, listener: Listener): Port {
  const fd = namespace.enter(() => socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0));
  const own = macBytes(place.mac);
  try {
    enableAuxData(fd);
    attachFilter(fd, dhcpReplies);
    bind(fd, packetAddress(place.ifIndex, ETH_P_IP));
  } catch (error) {
    close(fd);
    throw error;
  }
  const target = packetAddress(place.ifIndex, 0);
  loop.watch(fd, () =>
    drain(fd, listener, (length, checksumPending) => {
      const frame = decodeFrame(buffer.subarray(0, length), checksumPending);
      if (!isFor(frame.targetMac, own)) return;
      if (frame.sourcePort !== serverPort) throw new Malformed(`from UDP port ${frame.sourcePort}`);
      listener.heard({ message: decodeMessage(frame.payload), sourceMac: frame.sourceMac });
    }),
  );
  return {
    send: (message, route = {}) => send(fd, frameOf(message, own, route), target),
    close: () => loop.retire(fd),
  };
}

/** A UDP socket on the interface with the address that it has: the kernel finds the way to the server. Throws SysError. */
export function openUdpPort(
  loop: Loop,
  place: Place,
  namespace: Namespace,
  addresses: { own: Ipv4; server: Ipv4 },
  listener: Listener,
): Port {
  const fd = namespace.enter(() => socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
  try {
    setSocketOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    namespace.enter(() => bindToDevice(fd, place.ifName));
    bind(fd, inetAddress(ipv4Bytes(addresses.own), clientPort));
  } catch (error) {
    close(fd);
    throw error;
  }
  loop.watch(fd, () =>
    drain(fd, listener, (length) => listener.heard({ message: decodeMessage(buffer.slice(0, length)) })),
  );
  const target = inetAddress(ipv4Bytes(addresses.server), serverPort);
  return {
    send: (message) => send(fd, encodeMessage(message), target),
    close: () => loop.retire(fd),
  };
}

function drain(
  fd: number,
  listener: Listener,
  take: (length: number, checksumPending: boolean) => void,
): void {
  for (let i = 0; i < burst; i++) {
    try {
      const { length, checksumPending } = receivePacket(fd, buffer);
      take(length, checksumPending);
    } catch (error) {
      if (error instanceof Malformed) listener.ignored(error.message);
      // The link is down or gone, or the server's port is closed: the socket goes on, so does the waiting.
      else if (isErrno(error, "ENETDOWN", "ECONNREFUSED")) listener.ignored(error.message);
      else if (isErrno(error, "EAGAIN")) return;
      else throw error;
    }
  }
}

/** The frame that carries a message of the client to a server. */
export function frameOf(message: Message, sourceMac: Uint8Array, route: Route): Uint8Array {
  return encodeFrame({
    sourceMac,
    targetMac: route.targetMac ?? broadcastMac,
    source: route.source ?? 0,
    target: route.target ?? broadcastIp,
    sourcePort: clientPort,
    targetPort: serverPort,
    payload: encodeMessage(message),
  });
}

/** Sends one datagram from an ephemeral port of this namespace, by its routes. Throws SysError. */
export function sendByRoutes(message: Message, server: Ipv4): void {
  const fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  try {
    send(fd, encodeMessage(message), inetAddress(ipv4Bytes(server), serverPort));
  } finally {
    close(fd);
  }
}

/** Ours, or any group's. */
const isFor = (target: Uint8Array, own: Uint8Array): boolean =>
  (target[0]! & 1) === 1 || target.every((byte, i) => byte === own[i]);

export const macBytes = (text: string): Uint8Array =>
  Uint8Array.from(text.split(":"), (byte) => Number.parseInt(byte, 16));

export const macText = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
