import { checked, libc, ptr } from "./libc.ts";

/** linux/socket.h, bits/socket_type.h */
export const AF_NETLINK = 16;
export const AF_PACKET = 17;
export const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;

export const MSG_TRUNC = 0x20;
export const MSG_PEEK = 2;

/** Opens a socket, close-on-exec, in the calling thread's network namespace, where it stays. */
export function socket(family: number, type: number, protocol: number): number {
  return checked("socket", `family ${family}`, () => libc.socket(family, type | SOCK_CLOEXEC, protocol));
}

export function bind(fd: number, address: Uint8Array): void {
  checked("bind", `fd ${fd}`, () => libc.bind(fd, ptr(address), address.length));
}

/** Sends one message; to the connected or kernel side when there is no address. */
export function send(fd: number, message: Uint8Array, address?: Uint8Array): void {
  checked("send", `fd ${fd}`, () =>
    libc.sendto(
      fd,
      ptr(message),
      message.length,
      0,
      address === undefined ? null : ptr(address),
      address?.length ?? 0,
    ),
  );
}

/** Receives one message; with MSG_TRUNC in `flags` the length is the message's own, even beyond the buffer. */
export function recv(fd: number, buffer: Uint8Array, flags = 0): number {
  return checked("recv", `fd ${fd}`, () => libc.recv(fd, ptr(buffer), buffer.length, flags));
}

export function setSocketOption(fd: number, level: number, option: number, value: number): void {
  const data = new Int32Array([value]);
  checked("setsockopt", `fd ${fd} ${level}/${option}`, () =>
    libc.setsockopt(fd, level, option, ptr(data), 4),
  );
}

/** The local address that the kernel gave the socket. */
export function socketName(fd: number, length: number): Uint8Array {
  const address = new Uint8Array(length);
  const size = new Uint32Array([length]);
  checked("getsockname", `fd ${fd}`, () => libc.getsockname(fd, ptr(address), ptr(size)));
  return address;
}
