import {
  type Conf,
  ip,
  makeNode,
  namesIn,
  needs,
  pings,
  type TestNamespace,
  type TestNode,
} from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
let c: TestNamespace;
beforeEach((test) => {
  needs(test, "dummy");
  node = makeNode();
  c = node.container();
});
afterEach(() => node?.close());

const conf = (more: object = {}): Conf => node.conf("dummy", more);

describe.each(specVersions)("cniVersion %s", (cniVersion) => {
  test("ADD, CHECK where there is one, DEL; nothing stays", async () => {
    const added = await node.ok("ADD", conf({ cniVersion }), { netns: c });
    const [link] = ip(c, "link", "show", "dev", "eth0");
    expect(link.linkinfo.info_kind).toBe("dummy");
    const mtu = atLeast(cniVersion, "1.0.0") ? { mtu: 1500 } : {};
    if (atLeast(cniVersion, "0.3.0"))
      expect(added.interfaces).toEqual([{ name: "eth0", mac: link.address, sandbox: c.path, ...mtu }]);
    const ips = added.ips?.map((entry: { address: string }) => entry.address) ?? [added.ip4.ip, added.ip6.ip];
    expect(ips).toEqual(["10.88.0.2/24", "fd88::2/64"]);
    const later = conf({ cniVersion, prevResult: added });
    if (atLeast(cniVersion, "0.4.0")) await node.ok("CHECK", later, { netns: c });
    for (let i = 0; i < 2; i++) await node.ok("DEL", later, { netns: c });
    expect([namesIn(c), node.leases()]).toEqual([["lo"], []]);
  });
});

test("its addresses answer within the container, and nothing else is reached by it", async () => {
  await node.ok("ADD", conf(), { netns: c });
  c.run("ip", "link", "set", "lo", "up");
  expect(pings(c, "10.88.0.2")).toBe(true);
  expect(pings(c, "fd88::2")).toBe(true);
  expect(pings(c, "10.88.0.1")).toBe(false);
});

describe("an ADD that fails leaves nothing", () => {
  test.each<[string, () => Conf, RegExp]>([
    ["no IPAM", () => conf({ ipam: undefined }), /^dummy interface requires an IPAM configuration$/],
    ["IPAM plugin missing", () => conf({ ipam: { type: "nonesuch" } }), /nonesuch/],
    [
      "a route that the kernel refuses",
      () => conf({ ipam: { ...conf().ipam, routes: [{ dst: "10.77.0.0/16", gw: "172.31.0.1" }] } }),
      /10\.77\.0\.0\/16 via 172\.31\.0\.1/,
    ],
  ])("%s", async (_, bad, message) => {
    const error = await node.error("ADD", bad(), { netns: c });
    expect(error.msg).toMatch(message);
    expect(error.details ?? "").not.toContain("could not be taken back");
    expect([namesIn(c), node.leases()]).toEqual([["lo"], []]);
    await node.ok("ADD", conf(), { netns: c });
  });

  test("the name is taken: what has it stays", async () => {
    await node.ok("ADD", conf(), { netns: c });
    const { msg } = await node.error("ADD", conf(), { netns: c, id: "c2" });
    expect(msg).toBe('interface "eth0" already exists in the container');
    expect([namesIn(c), node.leases().length]).toEqual([["eth0", "lo"], 2]);
  });
});

test.each(["no netns", "netns gone", "link gone", "IPAM gone from the config"])(
  "DEL with %s",
  async (what) => {
    await node.ok("ADD", conf(), { netns: c });
    if (what === "netns gone") c.close();
    if (what === "link gone") c.run("ip", "link", "del", "eth0");
    const isGone = what === "IPAM gone from the config";
    await node.ok("DEL", conf(isGone ? { ipam: undefined } : {}), { netns: what === "no netns" ? "" : c });
    expect(node.leases().length).toBe(isGone ? 2 : 0);
    if (isGone) expect(namesIn(c)).toEqual(["lo"]);
  },
);

test.each([
  ["ip addr del 10.88.0.2/24 dev eth0", "lacks the address 10.88.0.2/24"],
  ["ip link set eth0 address 02:00:00:00:00:09", "02:00:00:00:00:09"],
  ["ip link set eth0 down", "eth0"],
  ["ip link del eth0", "eth0 is missing"],
])("CHECK fails after %s", async (command, message) => {
  const prevResult = await node.ok("ADD", conf(), { netns: c });
  c.run(...command.split(" "));
  expect((await node.error("CHECK", conf({ prevResult }), { netns: c })).msg).toContain(message);
});

test("STATUS says what IPAM says; GC gives addresses back", async () => {
  await node.ok("STATUS", conf());
  const unusable = { ...conf().ipam, dataDir: "/proc/nowhere" };
  expect(await node.error("STATUS", conf({ ipam: unusable }))).toMatchObject({ code: 50 });
  await node.ok("ADD", conf(), { netns: c });
  await node.ok("ADD", conf(), { netns: node.container(), id: "c2" });
  await node.ok("GC", conf({ "cni.dev/valid-attachments": [{ containerID: "c1", ifname: "eth0" }] }));
  expect(node.leases()).toEqual(["10.88.0.2", "fd88::2"]);
});
