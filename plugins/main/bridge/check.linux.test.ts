import { unlinkSync } from "node:fs";
import { join } from "node:path";
import { type Conf, makeNode, type TestNamespace, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
let c: TestNamespace;
let conf: Conf;
let port: string;
beforeEach(async () => {
  node = makeNode();
  c = node.container();
  conf = node.bridgeConf({ isDefaultGateway: true, promiscMode: true });
  conf.ipam.routes = [{ dst: "10.77.0.0/16" }, { dst: "fd77::/48" }];
  conf.prevResult = await node.ok("ADD", conf, { netns: c });
  port = conf.prevResult.interfaces[1].name;
});
afterEach(() => node.close());

const onHost = (command: string) => node.host.run(...command.split(" "));
const inContainer = (command: string) => c.run(...command.split(" "));

test("passes what ADD left, any number of times, and changes nothing", async () => {
  const before = node.state();
  for (let i = 0; i < 2; i++)
    expect(await node.call("CHECK", conf, { netns: c })).toMatchObject({ status: 0 });
  expect(node.state()).toEqual(before);
});

test("passes when a later plugin replaced the default route", async () => {
  inContainer("ip route replace default via 10.88.0.200");
  await node.ok("CHECK", conf, { netns: c });
});

const removeLeases = () => {
  for (const name of node.leases()) unlinkSync(join(node.dataDir, "testnet", name));
};

const breakages: [what: string, breakIt: () => void, message: string][] = [
  ["the IPv4 address", () => inContainer("ip addr del 10.88.0.2/24 dev eth0"), "10.88.0.2/24"],
  ["the IPv6 address", () => inContainer("ip addr del fd88::2/64 dev eth0"), "fd88::2/64"],
  ["a route", () => inContainer("ip route del 10.77.0.0/16"), "10.77.0.0/16"],
  ["an IPv6 route", () => inContainer("ip -6 route del fd77::/48"), "fd77::/48"],
  ["the default route", () => inContainer("ip -6 route del default"), "::/0"],
  ["a route's gateway", () => inContainer("ip route replace 10.77.0.0/16 via 10.88.0.9"), "10.88.0.1"],
  ["the route to the subnet", () => inContainer("ip route del 10.88.0.0/24"), "10.88.0.0/24"],
  ["the MAC address", () => inContainer("ip link set eth0 address 02:00:00:00:00:09"), "02:00:00:00:00:09"],
  ["the interface", () => inContainer("ip link del eth0"), "eth0 is missing"],
  [
    "the interface's kind",
    () => {
      inContainer("ip link del eth0");
      inContainer("ip link add eth0 type bridge");
    },
    "bridge",
  ],
  ["the port's bridge", () => onHost(`ip link set ${port} nomaster`), "is not a port of brtest"],
  [
    "the port's MAC address",
    () => onHost(`ip link set ${port} address 02:00:00:00:00:08`),
    "02:00:00:00:00:08",
  ],
  ["the bridge", () => onHost("ip link del brtest"), "bridge brtest is missing"],
  [
    "the bridge's MAC address",
    () => onHost("ip link set brtest address 02:00:00:00:00:07"),
    "02:00:00:00:00:07",
  ],
  ["the bridge's mode", () => onHost("ip link set brtest promisc off"), "promiscuous"],
  ["the lease", removeLeases, "c1"],
];

describe("tells what is broken", () => {
  test.each(breakages)("%s", async (_, breakIt, message) => {
    breakIt();
    const error = await node.error("CHECK", conf, { netns: c });
    expect(error.msg).toContain(message);
  });
});

describe("what it is called with", () => {
  test("without prevResult", async () => {
    const error = await node.error("CHECK", { ...conf, prevResult: undefined }, { netns: c });
    expect(error).toMatchObject({ code: 7, msg: "Required prevResult missing" });
  });

  test("another interface, or another namespace", async () => {
    const other = await node.error("CHECK", conf, { netns: c, ifName: "eth1" });
    expect(other.msg).toMatch(/eth1|c1/);
    expect((await node.error("CHECK", conf, { netns: node.container() })).msg).toContain("eth0");
    expect(await node.error("CHECK", conf, { netns: "/nowhere" })).toMatchObject({
      code: expect.any(Number),
    });
  });
});
