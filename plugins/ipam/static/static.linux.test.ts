import { makeNode, type TestNode } from "@tscni/test-support";
import { specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
beforeEach(() => {
  node = makeNode();
});
afterEach(() => node.close());

const netns = "/run/netns/none"; // an IPAM plugin never looks into it
const conf = (more: object = {}) => ({
  cniVersion: "1.1.0",
  name: "testnet",
  type: "static",
  ipam: {
    type: "static",
    addresses: [{ address: "10.10.0.1/24", gateway: "10.10.0.254" }, { address: "fd10::1/64" }],
    routes: [{ dst: "0.0.0.0/0" }, { dst: "fd99:0::/64", gw: "fd10:0::2", mtu: 1400, table: 0 }],
    dns: { nameservers: ["10.10.0.53"], domain: "example.test", search: ["a.test"], options: ["ndots:2"] },
  },
  ...more,
});

describe.each(specVersions)("cniVersion %s", (cniVersion) => {
  test("the result is what the config says, in this version's shape", async () => {
    const added = await node.ok("ADD", conf({ cniVersion }), { netns });
    expect(added).toMatchObject({ cniVersion, dns: conf().ipam.dns });
    const addresses = added.ips ?? [added.ip4, added.ip6].map((ip) => ({ ...ip, address: ip.ip }));
    expect(addresses).toMatchObject([
      { address: "10.10.0.1/24", gateway: "10.10.0.254" },
      { address: "fd10::1/64" },
    ]);
    const routes = added.routes ?? [...added.ip4.routes, ...added.ip6.routes];
    expect(routes).toMatchObject([{ dst: "0.0.0.0/0" }, { dst: "fd99::/64", gw: "fd10::2" }]);
    if (added.interfaces === undefined && added.routes)
      expect(routes[1]).toMatchObject({ mtu: 1400, table: 0 });
    await node.ok("DEL", conf({ cniVersion, prevResult: added }), { netns });
  });
});

test("without an address it succeeds with an empty result", async () => {
  expect(await node.ok("ADD", conf({ ipam: { type: "static" } }), { netns })).toEqual({
    cniVersion: "1.1.0",
  });
});

describe("CHECK", () => {
  const prevResult = async () => node.ok("ADD", conf(), { netns });
  const check = (result: unknown, more: object = {}) =>
    node.call("CHECK", conf({ prevResult: result, ...more }), { netns });

  test("passes what ADD gave, and a gateway that the main plugin added", async () => {
    const result = await prevResult();
    expect(await check(result)).toMatchObject({ status: 0, stdout: "" });
    result.ips[1].gateway = "fd10::fe";
    expect(await check(result)).toMatchObject({ status: 0 });
  });

  test.each([
    ["a missing address", (r: { ips: object[] }) => r.ips.pop(), "lacks the address fd10::1/64"],
    [
      "another prefix length",
      (r: { ips: { address: string }[] }) => {
        r.ips[0]!.address = "10.10.0.1/16";
      },
      "lacks the address 10.10.0.1/24",
    ],
    [
      "another gateway",
      (r: { ips: { gateway: string }[] }) => {
        r.ips[0]!.gateway = "10.10.0.9";
      },
      "the gateway of 10.10.0.1/24 in prevResult is 10.10.0.9, not 10.10.0.254",
    ],
  ])("tells %s", async (_, change, message) => {
    const result = await prevResult();
    change(result);
    const { status, json } = await check(result);
    expect(status).toBe(1);
    expect(json.msg).toContain(message);
  });

  test("needs prevResult", async () => {
    expect((await check(undefined)).json).toMatchObject({ code: 7, msg: "Required prevResult missing" });
  });
});

test("STATUS and GC ask for nothing but a config that ADD could use", async () => {
  await node.ok("STATUS", conf());
  await node.ok("GC", conf({ "cni.dev/valid-attachments": [] }));
  expect((await node.error("STATUS", conf({ ipam: undefined }))).msg).toBe("IPAM config missing 'ipam' key");
});

test("DEL takes any config, warning of what is wrong, and leaves files alone", async () => {
  const before = node.state();
  const wrong = conf({ ipam: { addresses: 5 }, runtimeConfig: { ips: ["x"] } });
  const { status, stderr } = await node.call("DEL", wrong, { netns: undefined, args: "nonsense" });
  expect(status).toBe(0);
  for (const key of ["ipam.addresses", "runtimeConfig.ips[0]"]) expect(stderr).toContain(`ignoring ${key}: `);
  expect(node.state()).toEqual(before);
});

test("under a bridge: the addresses are in the container and answer", async () => {
  const c = node.container();
  const bridge = { ...conf(), type: "bridge", bridge: "brtest", isGateway: true };
  bridge.ipam.routes = [];
  await node.ok("ADD", bridge, { netns: c });
  c.run("ping", "-c1", "-W1", "10.10.0.254");
  node.host.run("ping", "-c1", "-W1", "fd10::1");
  await node.ok("DEL", bridge, { netns: c });
  expect(node.veths()).toEqual([]);
});
