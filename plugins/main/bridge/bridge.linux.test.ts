import { ip, makeNode, type TestNamespace, type TestNode } from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
beforeEach(() => {
  node = makeNode();
});
afterEach(() => node.close());

const ping = (from: TestNamespace, address: string) => from.run("ping", "-c1", "-W1", address);
const linkOf = (ns: TestNamespace, name: string) => ip(ns, "link", "show", "dev", name)[0];
const addressesOf = (ns: TestNamespace, name: string): string[] =>
  ip(ns, "addr", "show", "dev", name, "scope", "global")[0]
    .addr_info.filter((a: { local?: string }) => a.local)
    .map((a: { local: string; prefixlen: number }) => `${a.local}/${a.prefixlen}`);

test("the moment that ADD returns, packets of both families go every way", async () => {
  const conf = node.bridgeConf({ isDefaultGateway: true });
  const [a, b] = [node.container(), node.container()];
  await node.ok("ADD", conf, { netns: a });
  ping(a, "fd88::1");
  ping(a, "10.88.0.1");
  ping(node.host, "fd88::2");
  await node.ok("ADD", conf, { netns: b, id: "c2" });
  ping(b, "fd88::2");
  ping(node.host, "fd88::3");
  ping(node.host, "10.88.0.3");
  ping(b, "10.88.0.2");
  ping(a, "10.88.0.3");
});

test("what ADD leaves on host and container, and DEL of it", async () => {
  const conf = node.bridgeConf({ isDefaultGateway: true });
  const c = node.container();
  const added = await node.ok("ADD", conf, { netns: c });
  const [bridge, port, end] = added.interfaces;

  expect(linkOf(node.host, "brtest")).toMatchObject({ operstate: "UP", address: bridge.mac });
  expect(linkOf(node.host, port.name)).toMatchObject({
    master: "brtest",
    operstate: "UP",
    address: port.mac,
    ifalias: "tscni testnet c1 eth0",
  });
  expect(linkOf(c, "eth0")).toMatchObject({ operstate: "UP", address: end.mac, mtu: end.mtu });
  expect(addressesOf(node.host, "brtest")).toEqual(["10.88.0.1/24", "fd88::1/64"]);
  expect(addressesOf(c, "eth0")).toEqual(["10.88.0.2/24", "fd88::2/64"]);
  expect(ip(c, "route", "show", "default")).toMatchObject([{ gateway: "10.88.0.1", dev: "eth0" }]);
  expect(ip(c, "-6", "route", "show", "default")).toMatchObject([{ gateway: "fd88::1", dev: "eth0" }]);
  for (const key of ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"])
    expect(node.host.run("sysctl", "-n", key).trim(), key).toBe("1");
  expect(node.leases()).toEqual(["10.88.0.2", "fd88::2"]);

  await node.ok("DEL", conf, { netns: c });
  expect(node.veths()).toEqual([]);
  expect(node.leases()).toEqual([]);
  expect(ip(c, "link").map((link) => link.ifname)).toEqual(["lo"]);
  expect(addressesOf(node.host, "brtest"), "the bridge stays").toEqual(["10.88.0.1/24", "fd88::1/64"]);
});

test("IPv6 works where host and container have it disabled by default", async () => {
  const c = node.container();
  for (const ns of [node.host, c])
    for (const scope of ["all", "default"]) ns.run("sysctl", "-w", `net.ipv6.conf.${scope}.disable_ipv6=1`);
  await node.ok("ADD", node.bridgeConf({ isDefaultGateway: true }), { netns: c });
  ping(c, "fd88::1");
  ping(node.host, "fd88::2");
});

describe.each(specVersions)("cniVersion %s", (cniVersion) => {
  test("the result has this version's shape; CHECK where there is one; DEL", async () => {
    const conf = node.bridgeConf({ cniVersion, isDefaultGateway: true });
    const c = node.container();
    const added = await node.ok("ADD", conf, { netns: c });
    expect(added).toEqual(expectedResult(cniVersion, c.path, added.interfaces ?? []));
    const later = { ...conf, prevResult: added };
    if (atLeast(cniVersion, "0.4.0")) await node.ok("CHECK", later, { netns: c });
    await node.ok("DEL", later, { netns: c });
    expect([node.veths(), node.leases()]).toEqual([[], []]);
  });
});

type Named = { name: string; mac: string };

function expectedResult(cniVersion: string, sandbox: string, found: Named[]): object {
  const routes = [
    { dst: "0.0.0.0/0", gw: "10.88.0.1" },
    { dst: "::/0", gw: "fd88::1" },
  ];
  if (!atLeast(cniVersion, "0.3.0"))
    return {
      cniVersion,
      ip4: { ip: "10.88.0.2/24", gateway: "10.88.0.1", routes: [routes[0]] },
      ip6: { ip: "fd88::2/64", gateway: "fd88::1", routes: [routes[1]] },
      dns: {},
    };
  const modern = atLeast(cniVersion, "1.0.0");
  const mac = expect.stringMatching(/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/);
  const mtu = modern ? { mtu: 1500 } : {};
  const interfaces = [
    { name: "brtest", mac, ...mtu },
    { name: expect.stringMatching(/^veth[0-9a-f]{11}$/), mac, ...mtu },
    { name: "eth0", mac, sandbox, ...mtu },
  ];
  expect(new Set(found.map((i) => i.mac)).size, "three different MAC addresses").toBe(3);
  const ips = [
    { ...(modern ? {} : { version: "4" }), address: "10.88.0.2/24", gateway: "10.88.0.1", interface: 2 },
    { ...(modern ? {} : { version: "6" }), address: "fd88::2/64", gateway: "fd88::1", interface: 2 },
  ];
  return { cniVersion, interfaces, ips, routes, ...(modern ? {} : { dns: {} }) };
}

describe("an ADD that has to be refused", () => {
  test("onto an interface that the container has already: nothing of it is touched", async () => {
    const conf = node.bridgeConf();
    const c = node.container();
    await node.ok("ADD", conf, { netns: c });
    const before = [node.state(), linkOf(c, "eth0")];
    for (const id of ["c1", "c2"]) {
      const error = await node.error("ADD", conf, { netns: c, id });
      expect(error.msg).toMatch(/^container veth name \("eth0"\) peer provided \("veth.*"\) already exists$/);
    }
    expect([node.state(), linkOf(c, "eth0")]).toEqual(before);
  });

  test("when the bridge's name belongs to another kind of link", async () => {
    node.host.run("ip", "link", "add", "brtest", "type", "ifb");
    const before = node.state();
    const error = await node.error("ADD", node.bridgeConf(), { netns: node.container() });
    expect(error.msg).toBe('"brtest" already exists but is not a bridge');
    expect(node.state()).toEqual(before);
  });

  test.each([undefined, "", "/nowhere", "/etc/hostname"])("netns %s", async (netns) => {
    const before = node.state();
    const error = await node.error("ADD", node.bridgeConf(), { netns });
    expect(error.code).toBe(netns ? 8 : 4);
    expect(node.state()).toEqual(before);
  });
});
