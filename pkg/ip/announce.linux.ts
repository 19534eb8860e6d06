import { type Ip, ipBytes } from "@tscni/addr";
import { AF_PACKET, close, SOCK_RAW, send, socket } from "@tscni/sys";

const ETH_P_ARP = 0x0806;
const ETH_P_IPV6 = 0x86dd;

/**
 * Tells the neighbours on a link which MAC address has these IP addresses: a gratuitous ARP request (RFC 5227)
 * for IPv4, an unsolicited neighbour advertisement with the override flag (RFC 4861, 7.2.6) for IPv6. A
 * neighbour that still has the address's last owner in its cache takes the new one at once. Call it in the
 * link's namespace.
 */
export function announceAddresses(index: number, mac: string, ips: readonly Ip[]): void {
  const hardware = Uint8Array.from(mac.split(":"), (byte) => Number.parseInt(byte, 16));
  if (hardware.length !== 6) return;
  const fd = socket(AF_PACKET, SOCK_RAW, 0);
  try {
    for (const ip of ips) {
      const frame =
        ip.family === 4 ? arpFrame(hardware, ipBytes(ip)) : advertisementFrame(hardware, ipBytes(ip));
      send(fd, frame, linkAddress(index));
    }
  } finally {
    close(fd);
  }
}

/** struct sockaddr_ll, linux/if_packet.h; for a raw frame only family and index count. */
function linkAddress(index: number): Uint8Array {
  const address = new Uint8Array(20);
  const view = new DataView(address.buffer);
  view.setUint16(0, AF_PACKET, true);
  view.setInt32(4, index, true);
  view.setUint8(11, 6);
  return address;
}

/** RFC 826: an ARP request from and for our own address, to everybody. */
export function arpFrame(mac: Uint8Array, ip: Uint8Array): Uint8Array {
  const broadcast = [255, 255, 255, 255, 255, 255];
  const ethernetIpv4 = [0, 1, 8, 0, 6, 4];
  const request = [0, 1];
  const unknown = [0, 0, 0, 0, 0, 0];
  return Uint8Array.from([
    ...broadcast,
    ...mac,
    ETH_P_ARP >> 8,
    ETH_P_ARP & 255,
    ...ethernetIpv4,
    ...request,
    ...mac,
    ...ip,
    ...unknown,
    ...ip,
  ]);
}

/** RFC 4861, 4.4: a neighbour advertisement from our own address to all nodes. */
export function advertisementFrame(mac: Uint8Array, ip: Uint8Array): Uint8Array {
  const allNodes = [0xff, 2, ...new Array(13).fill(0), 1];
  const override = [0x20, 0, 0, 0];
  const message = Uint8Array.from([136, 0, 0, 0, ...override, ...ip, 2, 1, ...mac]);
  const sum = checksum([...ip, ...allNodes, 0, 0, 0, message.length, 0, 0, 0, 58, ...message]);
  message[2] = sum >> 8;
  message[3] = sum & 255;
  const hopLimit = 255;
  return Uint8Array.from([
    ...[0x33, 0x33, 0, 0, 0, 1],
    ...mac,
    ETH_P_IPV6 >> 8,
    ETH_P_IPV6 & 255,
    ...[0x60, 0, 0, 0, 0, message.length, 58, hopLimit],
    ...ip,
    ...allNodes,
    ...message,
  ]);
}

/** RFC 1071, of an even number of bytes. */
function checksum(bytes: readonly number[]): number {
  let sum = 0;
  for (let i = 0; i < bytes.length; i += 2) sum += (bytes[i]! << 8) | bytes[i + 1]!;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
