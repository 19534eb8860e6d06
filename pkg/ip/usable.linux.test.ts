import { parseIp } from "@tscni/addr";
import {
  addAddress,
  createLink,
  IFA_F_NODAD,
  type Link,
  type Netlink,
  openRoute,
  setLink,
} from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import { commandIn, makeNamespace, type TestNamespace } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";
import { cidrOf, isLocal, waitUntilUsable } from "./index.ts";

let ns: TestNamespace;
let netlink: Netlink;
let eth0: Link;
beforeEach(() => {
  ns = makeNamespace();
  using sandbox = openNamespace(ns.path);
  netlink = sandbox.enter(openRoute);
  eth0 = createLink(netlink, { kind: "veth", name: "eth0", veth: { peer: { name: "p0" } } });
  for (const name of ["eth0", "p0"]) setLink(netlink, { name }, { up: true });
});
afterEach(() => {
  netlink.close();
  ns.close();
});

const ip = parseIp("fd88::2")!;
const add = (flags: number) => addAddress(netlink, { index: eth0.index, cidr: cidrOf("fd88::2/64"), flags });

test("an address without duplicate address detection is the host's when the wait is over", () => {
  expect(isLocal(netlink, ip, eth0.index)).toBe(false);
  for (let i = 0; i < 20; i++) {
    add(IFA_F_NODAD);
    waitUntilUsable(netlink, eth0.index, [ip]);
    expect([isLocal(netlink, ip, eth0.index), isLocal(netlink, ip)]).toEqual([true, true]);
    ns.run("ip", "addr", "del", "fd88::2/64", "dev", "eth0");
  }
});

test("it lasts until the address is there", () => {
  const later = ["sh", "-c", "sleep 0.3; ip addr add fd88::2/64 dev eth0 nodad"];
  Bun.spawn(commandIn(ns, later), { stdin: "ignore" });
  const begin = Bun.nanoseconds();
  waitUntilUsable(netlink, eth0.index, [ip]);
  expect(isLocal(netlink, ip, eth0.index)).toBe(true);
  expect(Bun.nanoseconds() - begin).toBeGreaterThan(250e6);
});

test("a tentative link-local address is waited for where that is asked for, but not without end", () => {
  ns.run("sysctl", "-qw", "net.ipv6.conf.eth0.accept_dad=2", "net.ipv6.conf.eth0.dad_transmits=30");
  for (const state of ["down", "up"]) ns.run("ip", "link", "set", "eth0", state);
  const begin = Bun.nanoseconds();
  waitUntilUsable(netlink, eth0.index, [], { linkLocal: true });
  expect(Bun.nanoseconds() - begin).toBeGreaterThan(900e6);
  expect(ns.run("ip", "-6", "addr", "show", "dev", "eth0")).toContain("tentative");
});
