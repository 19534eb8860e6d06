import { join } from "node:path";
import { openNamespace } from "@tscni/ns";
import { ip, makeNamespace, temporaryFolder } from "@tscni/test-support";
import { afterEach, expect, test } from "vitest";
import { AF_PACKET, bind, close, O, open, SOCK_RAW, type SysError, send, socket } from "./index.ts";
import {
  AF_INET,
  acceptNow,
  attachFilter,
  bootTimeMs,
  connectUnix,
  enableAuxData,
  inetAddress,
  listenUnix,
  packetAddress,
  pollReadable,
  readNow,
  receivePacket,
  SOCK_DGRAM,
  SOCK_NONBLOCK,
  sendNow,
  tryLockExclusive,
} from "./net.ts";

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});

test("a UNIX socket: connect, accept, both ways, without waiting", async () => {
  const folder = temporaryFolder();
  cleanups.push(folder.remove);
  const path = join(folder.path, "s");
  expect(() => connectUnix(path)).toThrow(expect.objectContaining({ code: "ENOENT" }));
  const listener = listenUnix(path);
  expect(() => listenUnix(path)).toThrow(expect.objectContaining({ code: "EADDRINUSE" }));
  expect(() => acceptNow(listener)).toThrow(expect.objectContaining({ code: "EAGAIN" }));
  expect(pollReadable([listener], 0)).toEqual([]);
  const client = connectUnix(path);
  expect(pollReadable([listener], 1000)).toEqual([listener]);
  const server = acceptNow(listener);
  const buffer = new Uint8Array(8);
  expect(() => readNow(server, buffer)).toThrow(expect.objectContaining({ code: "EAGAIN" }));
  expect(sendNow(client, Uint8Array.of(1, 2, 3))).toBe(3);
  expect(pollReadable([listener, server], 1000)).toEqual([server]);
  expect(readNow(server, buffer)).toBe(3);
  close(client);
  expect(pollReadable([listener, server], 1000)).toEqual([server]); // hung up
  expect(readNow(server, buffer)).toBe(0);
  expect(() => sendNow(server, buffer)).toThrow(expect.objectContaining({ code: "EPIPE" }));
  close(server);
  close(listener);
  // A process that another test starts just now has the listener, too, until it has become its program.
  const refusal = () => {
    try {
      close(connectUnix(path));
      return "none";
    } catch (error) {
      return (error as SysError).code;
    }
  };
  await expect.poll(refusal).toBe("ECONNREFUSED");
  expect(() => listenUnix(`/${"x".repeat(107)}`)).toThrow(RangeError);
});

test("a packet socket tells whose checksum is not filled in, and its filter keeps others out", () => {
  const [a, b] = [makeNamespace("a"), makeNamespace("b")];
  cleanups.push(a.close, b.close);
  a.run("ip", "link", "add", "e0", "type", "veth", "peer", "name", "e0", "netns", b.path);
  for (const [ns, address] of [
    [a, "10.9.0.1/24"],
    [b, "10.9.0.2/24"],
  ] as const) {
    ns.run("ip", "addr", "add", address, "dev", "e0");
    ns.run("ip", "link", "set", "e0", "up");
  }
  const [link] = ip(b, "link", "show", "dev", "e0");
  using inB = openNamespace(b.path);
  const fd = inB.enter(() => socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0));
  cleanups.push(() => close(fd));
  enableAuxData(fd);
  attachFilter(fd, [
    [0x28, 0, 0, 36], // ldh [36]: the UDP destination port
    [0x15, 0, 1, 68], // jeq 68
    [0x06, 0, 0, 0xffff], // ret
    [0x06, 0, 0, 0],
  ]);
  bind(fd, packetAddress(link.ifindex, 0x0800));

  using inA = openNamespace(a.path);
  const udp = inA.enter(() => socket(AF_INET, SOCK_DGRAM, 0));
  cleanups.push(() => close(udp));
  send(udp, Uint8Array.of(9), inetAddress(Uint8Array.of(10, 9, 0, 2), 69));
  send(udp, Uint8Array.of(7, 8), inetAddress(Uint8Array.of(10, 9, 0, 2), 68));
  const buffer = new Uint8Array(2048);
  expect(pollReadable([fd], 5000)).toEqual([fd]);
  expect(receivePacket(fd, buffer)).toEqual({ length: 44, checksumPending: true });
  expect([...buffer.subarray(42, 44)]).toEqual([7, 8]);
  expect(() => receivePacket(fd, buffer)).toThrow(expect.objectContaining({ code: "EAGAIN" }));

  // The same frame, sent as it is: nobody is going to fill anything in.
  const raw = inA.enter(() => socket(AF_PACKET, SOCK_RAW, 0));
  cleanups.push(() => close(raw));
  const [from] = ip(a, "link", "show", "dev", "e0");
  send(raw, buffer.subarray(0, 44), packetAddress(from.ifindex, 0));
  expect(pollReadable([fd], 5000)).toEqual([fd]);
  expect(receivePacket(fd, buffer)).toEqual({ length: 44, checksumPending: false });
});

test("a clock that runs, and a lock that one holds at a time", () => {
  const before = bootTimeMs();
  pollReadable([], 20);
  expect(bootTimeMs() - before).toBeGreaterThanOrEqual(19);
  expect(bootTimeMs() - before).toBeLessThan(10_000);
  const folder = temporaryFolder();
  cleanups.push(folder.remove);
  const lock = () => open(join(folder.path, "lock"), O.RDWR | O.CREAT, 0o600);
  const [first, second] = [lock(), lock()];
  expect(tryLockExclusive(first)).toBe(true);
  expect(tryLockExclusive(second)).toBe(false);
  close(first);
  expect(tryLockExclusive(second)).toBe(true);
  close(second);
});
