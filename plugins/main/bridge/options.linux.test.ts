import { ip, makeNode, type TestNamespace, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
beforeEach(() => {
  node = makeNode();
});
afterEach(() => node.close());

const linkOf = (ns: TestNamespace, name: string) => ip(ns, "link", "show", "dev", name)[0];
const portOf = () => linkOf(node.host, node.veths()[0]!);
const sysctl = (ns: TestNamespace, key: string) => ns.run("sysctl", "-n", key).trim();
const pings = (from: TestNamespace, address: string): boolean => {
  try {
    return from.run("ping", "-c1", "-W1", address).includes(" 1 received");
  } catch {
    return false;
  }
};

test("mtu, in bytes, of bridge, host end and container end", async () => {
  const added = await node.ok("ADD", node.bridgeConf({ mtu: 1400 }), { netns: node.container() });
  expect(added.interfaces.map((i: { mtu: number }) => i.mtu)).toEqual([1400, 1400, 1400]);
  expect(linkOf(node.host, "brtest").mtu).toBe(1400);
  expect(portOf().mtu).toBe(1400);
});

test("hairpinMode lets a container reach itself by way of the bridge", async () => {
  await node.ok("ADD", node.bridgeConf({ hairpinMode: true }), { netns: node.container() });
  expect(portOf().linkinfo.info_slave_data).toMatchObject({ hairpin: true, isolated: false });
});

test("promiscMode", async () => {
  await node.ok("ADD", node.bridgeConf(), { netns: node.container() });
  expect(linkOf(node.host, "brtest").flags).not.toContain("PROMISC");
  await node.ok("ADD", node.bridgeConf({ promiscMode: true }), { netns: node.container(), id: "c2" });
  expect(linkOf(node.host, "brtest").flags).toContain("PROMISC");
});

test("portIsolation keeps containers apart, and not from the gateway", async () => {
  const [a, b, c] = [node.container(), node.container(), node.container()];
  const isolated = node.bridgeConf({ portIsolation: true, isGateway: true });
  await node.ok("ADD", isolated, { netns: a, id: "a" });
  expect(portOf().linkinfo.info_slave_data).toMatchObject({ hairpin: false, isolated: true });
  await node.ok("ADD", isolated, { netns: b, id: "b" });
  await node.ok("ADD", node.bridgeConf({ isGateway: true }), { netns: c, id: "c" });
  expect(pings(a, "10.88.0.1")).toBe(true);
  expect(pings(a, "10.88.0.4"), "a port that is not isolated").toBe(true);
  expect(pings(a, "10.88.0.3"), "another isolated port").toBe(false);
});

describe("enabledad", () => {
  test("off: no detection, addresses are usable at once", async () => {
    const c = node.container();
    await node.ok("ADD", node.bridgeConf({ isGateway: true }), { netns: c });
    expect(sysctl(c, "net.ipv6.conf.eth0.accept_dad")).toBe("0");
    // The link-local address comes by work that the kernel does when it finds the time.
    const [{ addr_info: found }] = ip(c, "-6", "addr", "show", "dev", "eth0", "scope", "global");
    expect(found[0]).toMatchObject({ local: "fd88::2" });
    expect(found[0].tentative).toBeUndefined();
    expect(pings(c, "fd88::1")).toBe(true);
  });

  test("on: ADD returns when the address has proved to be unique", async () => {
    const c = node.container();
    await node.ok("ADD", node.bridgeConf({ isGateway: true, enabledad: true }), { netns: c });
    expect(sysctl(c, "net.ipv6.conf.eth0.accept_dad")).toBe("1");
    expect(sysctl(c, "net.ipv6.conf.eth0.enhanced_dad")).toBe("1");
    expect(pings(c, "fd88::1")).toBe(true);
  });

  test("on: an address that somebody else has is an error, and everything is taken back", async () => {
    const conf = node.bridgeConf({ enabledad: true });
    const squatter = node.container();
    await node.ok("ADD", node.bridgeConf({}, []), { netns: squatter, id: "squatter" });
    squatter.run("ip", "addr", "add", "fd88::2/64", "dev", "eth0", "nodad");
    const [veths, c] = [node.veths(), node.container()];
    const error = await node.error("ADD", conf, { netns: c });
    expect(error.msg).toContain("fd88::2");
    expect([node.veths(), node.leases()]).toEqual([veths, []]);
  });
});

describe("without IPAM", () => {
  test("layer 2 only: up, no address, router advertisements left to the kernel", async () => {
    const c = node.container();
    const added = await node.ok("ADD", node.bridgeConf({ isGateway: true }, []), { netns: c });
    expect(added).toMatchObject({ interfaces: [{ name: "brtest" }, {}, { name: "eth0" }] });
    expect(added.ips ?? []).toEqual([]);
    expect(linkOf(c, "eth0").operstate).toBe("UP");
    expect(sysctl(c, "net.ipv6.conf.eth0.accept_ra")).toBe("1");
    expect(ip(node.host, "-6", "addr", "show", "dev", added.interfaces[1].name)).toEqual([]);
    const conf = { ...node.bridgeConf({}, []), prevResult: added };
    await node.ok("CHECK", conf, { netns: c });
    await node.ok("DEL", conf, { netns: c });
    expect(node.veths()).toEqual([]);
  });

  test("disableContainerInterface leaves the container's end down", async () => {
    const conf = node.bridgeConf({ disableContainerInterface: true }, []);
    const c = node.container();
    const added = await node.ok("ADD", conf, { netns: c });
    expect(linkOf(c, "eth0").flags).not.toContain("UP");
    await node.ok("CHECK", { ...conf, prevResult: added }, { netns: c });
  });
});

test("dns of the config takes the place of IPAM's", async () => {
  const dns = { nameservers: ["10.88.0.53"], search: ["example.test"] };
  const added = await node.ok("ADD", node.bridgeConf({ dns }), { netns: node.container() });
  expect(added.dns).toEqual(dns);
});

describe("mac", () => {
  const [fromEnv, fromArgs, fromRuntime] = ["02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"];
  const args = { cni: { mac: fromArgs } };
  const runtimeConfig = { mac: fromRuntime.replaceAll(":", "-").toUpperCase() };

  test.each([
    ["CNI_ARGS", {}, `K8S_POD_NAME=x;MAC=${fromEnv}`, fromEnv],
    ["args.cni.mac over CNI_ARGS", { args }, `MAC=${fromEnv}`, fromArgs],
    ["the capability over both", { args, runtimeConfig }, `MAC=${fromEnv}`, fromRuntime],
  ])("%s", async (_, more, cniArgs, expected) => {
    const c = node.container();
    const added = await node.ok("ADD", node.bridgeConf(more), {
      netns: c,
      args: `IgnoreUnknown=1;${cniArgs}`,
    });
    expect(added.interfaces[2].mac).toBe(expected);
    expect(linkOf(c, "eth0").address).toBe(expected);
  });

  test.each([
    ["not an address", { args: { cni: { mac: "02:00" } } }, 'args.cni.mac: "02:00" is not a MAC address'],
    [
      "a multicast address",
      { args: { cni: { mac: "01:00:5e:00:00:01" } } },
      'mac: "01:00:5e:00:00:01" is a multicast address',
    ],
  ])("%s is refused by name", async (_, more, message) => {
    await node.ok("ADD", node.bridgeConf(), { netns: node.container(), id: "other" });
    const [veths, leases] = [node.veths(), node.leases()];
    const error = await node.error("ADD", node.bridgeConf(more), { netns: node.container() });
    expect(`${error.msg} ${error.details}`).toContain(message);
    expect([node.veths(), node.leases()]).toEqual([veths, leases]);
  });
});
