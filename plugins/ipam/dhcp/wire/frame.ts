import type { Ipv4 } from "./ipv4.ts";
import { Malformed } from "./options.ts";

/** A UDP datagram with all that is around it on Ethernet. */
export interface Frame {
  /** Six bytes each. */
  sourceMac: Uint8Array;
  targetMac: Uint8Array;
  source: Ipv4;
  target: Ipv4;
  sourcePort: number;
  targetPort: number;
  payload: Uint8Array;
}

export const broadcastMac = Uint8Array.of(255, 255, 255, 255, 255, 255);

/** linux/if_ether.h */
export const ETH_P_IP = 0x0800;
const [ETHERNET, IP, UDP] = [14, 20, 8];
const udpProtocol = 17;

/** Ethernet II, IPv4 (RFC 791), UDP (RFC 768). */
export function encodeFrame(frame: Frame): Uint8Array {
  const udpLength = UDP + frame.payload.length;
  const bytes = new Uint8Array(ETHERNET + IP + udpLength);
  const view = new DataView(bytes.buffer);
  bytes.set(frame.targetMac, 0);
  bytes.set(frame.sourceMac, 6);
  view.setUint16(12, ETH_P_IP);
  const ip = ETHERNET;
  bytes.set([0x45, 0x10], ip); // version and length of the header; low delay
  view.setUint16(ip + 2, IP + udpLength);
  view.setUint16(ip + 6, 0x4000); // don't fragment
  bytes.set([64, udpProtocol], ip + 8);
  view.setUint32(ip + 12, frame.source);
  view.setUint32(ip + 16, frame.target);
  view.setUint16(ip + 10, checksum(bytes.subarray(ip, ip + IP)));
  const udp = ip + IP;
  view.setUint16(udp, frame.sourcePort);
  view.setUint16(udp + 2, frame.targetPort);
  view.setUint16(udp + 4, udpLength);
  bytes.set(frame.payload, udp + UDP);
  view.setUint16(udp + 6, udpChecksum(frame, bytes.subarray(udp)) || 0xffff);
  return bytes;
}

/**
 * Reads a frame. `checksumPending` says that the kernel has not filled in UDP's checksum (PACKET_AUXDATA).
 * Throws Malformed for all that is not one whole UDP datagram over IPv4 with correct checksums.
 */
export function decodeFrame(bytes: Uint8Array, checksumPending: boolean): Frame {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length < ETHERNET + IP + UDP) throw new Malformed(`a frame of ${bytes.length} bytes`);
  if (view.getUint16(12) !== ETH_P_IP || bytes[ETHERNET]! >> 4 !== 4) throw new Malformed("not IPv4");
  const header = (bytes[ETHERNET]! & 15) * 4;
  const total = view.getUint16(ETHERNET + 2);
  if (header < IP || total < header + UDP || ETHERNET + total > bytes.length)
    throw new Malformed(
      `lengths of the IP header do not fit: ${header} and ${total} of ${bytes.length} bytes`,
    );
  if (checksum(bytes.subarray(ETHERNET, ETHERNET + header)) !== 0)
    throw new Malformed("IP checksum is wrong");
  if ((view.getUint16(ETHERNET + 6) & 0x3fff) !== 0) throw new Malformed("a fragment");
  if (bytes[ETHERNET + 9] !== udpProtocol) throw new Malformed("not UDP");
  const udp = ETHERNET + header;
  const udpLength = view.getUint16(udp + 4);
  if (udpLength < UDP || udpLength > total - header) throw new Malformed(`UDP length is ${udpLength}`);
  const frame = {
    targetMac: bytes.slice(0, 6),
    sourceMac: bytes.slice(6, 12),
    source: view.getUint32(ETHERNET + 12),
    target: view.getUint32(ETHERNET + 16),
    sourcePort: view.getUint16(udp),
    targetPort: view.getUint16(udp + 2),
    payload: bytes.slice(udp + UDP, udp + udpLength),
  };
  const unused = view.getUint16(udp + 6) === 0;
  if (!unused && !checksumPending && udpChecksum(frame, bytes.subarray(udp, udp + udpLength)) !== 0)
    throw new Malformed("UDP checksum is wrong");
  return frame;
}

/** Over the datagram and a pseudo header, RFC 768; 0 for one whose own checksum is right. */
function udpChecksum({ source, target }: Pick<Frame, "source" | "target">, datagram: Uint8Array): number {
  const pseudo = new Uint8Array(12);
  const view = new DataView(pseudo.buffer);
  view.setUint32(0, source);
  view.setUint32(4, target);
  view.setUint16(8, udpProtocol);
  view.setUint16(10, datagram.length);
  return checksum(pseudo, datagram);
}

/** RFC 1071, over parts of which all but the last have an even number of bytes. */
function checksum(...parts: Uint8Array[]): number {
  let sum = 0;
  for (const part of parts)
    for (let i = 0; i < part.length; i += 2) sum += (part[i]! << 8) | (part[i + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
