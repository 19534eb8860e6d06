import { ipBytes, parseIp } from "@tscni/addr";
import { openNamespace } from "@tscni/ns";
import { AF_PACKET, close, SOCK_RAW, send, socket } from "@tscni/sys";
import { ip, type NamespaceLike } from "./command.ts";

/**
 * A router on an interface of a namespace: `advertise()` sends one router advertisement (RFC 4861, 4.2) that
 * offers a default route and the prefix 2001:db8:77::/64 for addresses of one's own.
 */
export function makeRouter(ns: NamespaceLike, dev: string): { advertise(): void; close(): void } {
  const [link] = ip(ns, "link", "show", "dev", dev);
  const mac = (link.address as string).split(":").map((byte) => Number.parseInt(byte, 16));
  using sandbox = openNamespace(typeof ns === "string" ? ns : ns.path);
  const fd = sandbox.enter(() => socket(AF_PACKET, SOCK_RAW, 0));
  const frame = advertisement(mac);
  const target = new Uint8Array(20); // struct sockaddr_ll, linux/if_packet.h
  const view = new DataView(target.buffer);
  view.setUint16(0, AF_PACKET, true);
  view.setInt32(4, link.ifindex, true);
  return { advertise: () => send(fd, frame, target), close: () => close(fd) };
}

const bytesOf = (text: string): number[] => [...ipBytes(parseIp(text)!)];

function advertisement(mac: readonly number[]): Uint8Array {
  const [source, allNodes] = [bytesOf("fe80::77"), bytesOf("ff02::1")];
  const lifetimes = [0xff, 0xff, 0xff, 0xff];
  const header = [134, 0, 0, 0, 64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0];
  const linkLayer = [1, 1, ...mac];
  const onLinkAndAutonomous = 0xc0;
  const prefix = [
    3,
    4,
    64,
    onLinkAndAutonomous,
    ...lifetimes,
    ...lifetimes,
    0,
    0,
    0,
    0,
    ...bytesOf("2001:db8:77::"),
  ];
  const message = [...header, ...linkLayer, ...prefix];
  const sum = checksum([...source, ...allNodes, 0, 0, 0, message.length, 0, 0, 0, 58, ...message]);
  message[2] = sum >> 8;
  message[3] = sum & 255;
  const ipv6 = [0x60, 0, 0, 0, 0, message.length, 58, 255, ...source, ...allNodes];
  return Uint8Array.from([0x33, 0x33, 0, 0, 0, 1, ...mac, 0x86, 0xdd, ...ipv6, ...message]);
}

/** RFC 1071, of an even number of bytes. */
function checksum(bytes: readonly number[]): number {
  let sum = 0;
  for (let i = 0; i < bytes.length; i += 2) sum += (bytes[i]! << 8) | bytes[i + 1]!;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
