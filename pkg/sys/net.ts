import { O } from "./files.ts";
import { checked, libc, ptr } from "./libc.ts";
import { socket } from "./sockets.ts";

/*
 * Sockets of more than netlink: UNIX, UDP and packet sockets, without waiting. For the few programs that talk to
 * others than the kernel, hence not among what every plugin loads.
 */

export const AF_UNIX = 1;
export const AF_INET = 2;
export const SOCK_STREAM = 1;
export const SOCK_DGRAM = 2;
/** To be added to a socket's type: what would wait throws SysError EAGAIN instead. */
export const SOCK_NONBLOCK = O.NONBLOCK;
const SOCK_CLOEXEC = 0o2000000;

export const SOL_SOCKET = 1;
export const SO_REUSEADDR = 2;
export const SO_BROADCAST = 6;
export const SO_BINDTODEVICE = 25;
const SO_ATTACH_FILTER = 26;

const SUN_PATH_BYTES = 108;

/** struct sockaddr_un. Throws RangeError for a path of more than 107 bytes, the kernel's limit. */
function unixAddress(path: string): Uint8Array {
  const bytes = new TextEncoder().encode(path);
  if (bytes.length >= SUN_PATH_BYTES)
    throw new RangeError(
      `socket path ${path}: longer than the ${SUN_PATH_BYTES - 1} bytes that the kernel allows`,
    );
  const address = new Uint8Array(2 + bytes.length + 1);
  address[0] = AF_UNIX;
  address.set(bytes, 2);
  return address;
}

/** Connects to a UNIX stream socket. Throws SysError ENOENT or ECONNREFUSED when nobody listens. */
export function connectUnix(path: string): number {
  const address = unixAddress(path);
  const fd = socket(AF_UNIX, SOCK_STREAM, 0);
  try {
    checked("connect", path, () => libc.connect(fd, ptr(address), address.length));
    return fd;
  } catch (error) {
    libc.close(fd);
    throw error;
  }
}

/** Listens on a new UNIX stream socket, whose `acceptNow` does not wait. Throws SysError EADDRINUSE for a path that exists. */
export function listenUnix(path: string, backlog = 128): number {
  const address = unixAddress(path);
  const fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
  try {
    checked("bind", path, () => libc.bind(fd, ptr(address), address.length));
    checked("listen", path, () => libc.listen(fd, backlog));
    return fd;
  } catch (error) {
    libc.close(fd);
    throw error;
  }
}

/** asm-generic/ioctls.h */
const FIONBIO = 0x5421;

/** Makes a descriptor that came from elsewhere throw SysError EAGAIN instead of waiting. */
export function setNonBlocking(fd: number): void {
  const on = Int32Array.of(1);
  checked("ioctl", `fd ${fd}`, () => libc.ioctl(fd, FIONBIO, ptr(on)));
}

/** The next connection, non-blocking. Throws SysError EAGAIN when there is none. */
export function acceptNow(fd: number): number {
  return checked("accept", `fd ${fd}`, () => libc.accept4(fd, null, null, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

/** Reads what is there: the number of bytes, 0 at the end. Throws SysError EAGAIN when there is nothing. */
export function readNow(fd: number, buffer: Uint8Array): number {
  return checked("read", `fd ${fd}`, () => libc.read(fd, ptr(buffer), buffer.length));
}

/** Sends what the socket takes now, without SIGPIPE; the number of bytes. Throws SysError EAGAIN, EPIPE. */
export function sendNow(fd: number, data: Uint8Array): number {
  return checked("send", `fd ${fd}`, () => libc.sendto(fd, ptr(data), data.length, MSG_NOSIGNAL, null, 0));
}
const MSG_NOSIGNAL = 0x4000;

/** struct sockaddr_in */
export function inetAddress(ip: Uint8Array, port: number): Uint8Array {
  return Uint8Array.from([AF_INET, 0, port >> 8, port & 255, ...ip, 0, 0, 0, 0, 0, 0, 0, 0]);
}

/** Binds a socket to an interface by name. */
export function bindToDevice(fd: number, name: string): void {
  setSocketOptionBytes(fd, SOL_SOCKET, SO_BINDTODEVICE, new TextEncoder().encode(`${name}\0`));
}

export function setSocketOptionBytes(fd: number, level: number, option: number, data: Uint8Array): void {
  checked("setsockopt", `fd ${fd} ${level}/${option}`, () =>
    libc.setsockopt(fd, level, option, ptr(data), data.length),
  );
}

/** One instruction of a classic BPF program: code, jump if true, jump if false, k (linux/filter.h). */
export type BpfInstruction = readonly [code: number, jt: number, jf: number, k: number];

/** Lets only those packets into the socket that the program does not answer with 0. */
export function attachFilter(fd: number, program: readonly BpfInstruction[]): void {
  const code = new DataView(new ArrayBuffer(8 * program.length)); // struct sock_filter
  for (const [i, [op, jt, jf, k]] of program.entries()) {
    code.setUint16(8 * i, op, true);
    code.setUint8(8 * i + 2, jt);
    code.setUint8(8 * i + 3, jf);
    code.setUint32(8 * i + 4, k, true);
  }
  const bytes = new Uint8Array(code.buffer);
  const fprog = new BigUint64Array([BigInt(program.length), BigInt(ptr(bytes))]); // struct sock_fprog
  checked("setsockopt", `fd ${fd} filter`, () =>
    libc.setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, ptr(fprog), 16),
  );
  if (bytes.length === 0) throw new RangeError("an empty filter"); // also keeps the program alive until here
}

// linux/if_packet.h
const SOL_PACKET = 263;
const PACKET_AUXDATA = 8;
const TP_STATUS_CSUMNOTREADY = 1 << 3;

/** Makes `receivePacket` able to tell which checksums the kernel has not filled in. */
export function enableAuxData(fd: number): void {
  setSocketOptionBytes(fd, SOL_PACKET, PACKET_AUXDATA, Uint8Array.of(1, 0, 0, 0));
}

export interface ReceivedPacket {
  /** Bytes; never more than the buffer has. */
  length: number;
  /** Whether its transport checksum is still to be filled in, as of what another namespace of this host sent. */
  checksumPending: boolean;
}

/** Receives a packet without waiting; throws SysError EAGAIN when there is none. */
export function receivePacket(fd: number, buffer: Uint8Array): ReceivedPacket {
  const control = new Uint8Array(64);
  // struct msghdr: name, namelen, iov, iovlen, control, controllen, flags; behind it, the struct iovec.
  const header = new BigUint64Array(9);
  const start = ptr(header);
  header.set([0n, 0n, BigInt(start) + 56n, 1n, BigInt(ptr(control)), 64n, 0n]);
  header.set([BigInt(ptr(buffer)), BigInt(buffer.length)], 7);
  const length = checked("recvmsg", `fd ${fd}`, () => libc.recvmsg(fd, start, MSG_DONTWAIT));
  return { length, checksumPending: checksumPendingIn(control.subarray(0, Number(header[5]))) };
}
const MSG_DONTWAIT = 0x40;

/** struct cmsghdr: len 8, level 4, type 4; then struct tpacket_auxdata, which begins with tp_status. */
function checksumPendingIn(control: Uint8Array): boolean {
  if (control.length < 20) return false;
  const view = new DataView(control.buffer, control.byteOffset);
  if (view.getInt32(8, true) !== SOL_PACKET || view.getInt32(12, true) !== PACKET_AUXDATA) return false;
  return (view.getUint32(16, true) & TP_STATUS_CSUMNOTREADY) !== 0;
}

/** struct sockaddr_ll: all frames of this EtherType on this link; 0 for none, to send only. */
export function packetAddress(ifIndex: number, etherType: number): Uint8Array {
  const address = new Uint8Array(20);
  const view = new DataView(address.buffer);
  view.setUint16(0, 17, true); // AF_PACKET
  view.setUint16(2, etherType); // big endian
  view.setInt32(4, ifIndex, true);
  return address;
}

const POLLIN = 1;

/**
 * Waits until one of the descriptors has something to read, or has hung up, or for `timeoutMs`; returns those. A
 * signal ends the waiting early.
 */
export function pollReadable(fds: readonly number[], timeoutMs: number): number[] {
  const entries = new Int32Array(2 * fds.length + 1); // struct pollfd: int fd; short events, revents
  for (let i = 0; i < fds.length; i++) {
    entries[2 * i] = fds[i]!;
    entries[2 * i + 1] = POLLIN;
  }
  // Not by `checked`, which would go on waiting after a signal.
  const ready = libc.poll(ptr(entries), fds.length, timeoutMs);
  return ready <= 0 ? [] : fds.filter((_, i) => entries[2 * i + 1]! >>> 16 !== 0);
}

const CLOCK_BOOTTIME = 7;

/** Milliseconds since the machine started, time asleep included: neither steps nor stops. */
export function bootTimeMs(): number {
  const time = new BigInt64Array(2); // struct timespec
  checked("clock_gettime", "CLOCK_BOOTTIME", () => libc.clock_gettime(CLOCK_BOOTTIME, ptr(time)));
  return Number(time[0]) * 1000 + Number(time[1]) / 1e6;
}

const [LOCK_EX, LOCK_NB] = [2, 4];

/** Takes an exclusive flock(2) if nobody has it; false when somebody does. */
export function tryLockExclusive(fd: number): boolean {
  return libc.flock(fd, LOCK_EX | LOCK_NB) === 0;
}

/** Permission bits that files and sockets made from now on do not get. */
export function setUmask(mask: number): void {
  libc.umask(mask);
}

/**
 * A descriptor that becomes readable when one of these signals (numbers up to 31) has come, which then does nothing
 * else. Only for a process of a single thread: another one would get the signal.
 */
export function signalDescriptor(signals: readonly number[]): number {
  const set = new BigUint64Array(16); // sigset_t, of any C library
  for (const signal of signals) set[0]! |= 1n << BigInt(signal - 1);
  checked("sigprocmask", `${signals}`, () => libc.sigprocmask(0, ptr(set), null)); // SIG_BLOCK
  return checked("signalfd", `${signals}`, () => libc.signalfd(-1, ptr(set), O.NONBLOCK | O.CLOEXEC));
}
