import {
  addAddress,
  type Conf,
  ip,
  makeLan,
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
let lan: TestNamespace;
let c: TestNamespace;
beforeEach((test) => {
  needs(test, "ipvlan");
  node = makeNode();
  lan = makeLan(node, "10.88.0.50/24", "fd88::50/64");
  c = node.container();
});
afterEach(() => node?.close());

const conf = (more: object = {}, subnets?: string[]): Conf =>
  node.conf("ipvlan", { master: "eth0", ...more }, subnets);
const linkOf = (ns: TestNamespace, name = "eth0") => ip(ns, "link", "show", "dev", name)[0];

describe.each(specVersions)("cniVersion %s", (cniVersion) => {
  test("ADD, CHECK where there is one, DEL; nothing stays", async () => {
    const added = await node.ok("ADD", conf({ cniVersion }), { netns: c });
    const { address, linkinfo } = linkOf(c);
    expect(linkinfo).toMatchObject({ info_kind: "ipvlan", info_data: { mode: "l2" } });
    const mtu = atLeast(cniVersion, "1.0.0") ? { mtu: 1500 } : {};
    if (atLeast(cniVersion, "0.3.0"))
      expect(added.interfaces).toEqual([{ name: "eth0", mac: address, sandbox: c.path, ...mtu }]);
    const ips = added.ips?.map((entry: { address: string }) => entry.address) ?? [added.ip4.ip, added.ip6.ip];
    expect(ips).toEqual(["10.88.0.2/24", "fd88::2/64"]);
    const later = conf({ cniVersion, prevResult: added });
    if (atLeast(cniVersion, "0.4.0")) await node.ok("CHECK", later, { netns: c });
    for (let i = 0; i < 2; i++) await node.ok("DEL", later, { netns: c });
    expect([namesIn(c), node.leases()]).toEqual([["lo"], []]);
  });
});

describe("packets", () => {
  test("the moment that ADD returns both families reach the network and other containers, not the host", async () => {
    addAddress(node.host, "eth0", "10.88.0.200/24");
    await node.ok("ADD", conf(), { netns: c });
    expect(pings(c, "fd88::50")).toBe(true);
    expect(pings(c, "10.88.0.50")).toBe(true);
    const other = node.container();
    await node.ok("ADD", conf(), { netns: other, id: "c2" });
    expect(linkOf(other).address, "one MAC address for all").toBe(linkOf(node.host).address);
    expect(pings(other, "fd88::2")).toBe(true);
    expect(pings(other, "10.88.0.2")).toBe(true);
    expect(pings(c, "10.88.0.200"), "an ipvlan never reaches its master").toBe(false);
  });

  test("an address that another host had before answers at once: neighbours are told", async () => {
    for (const [i, netns] of [c, node.container()].entries()) {
      node.resetLeases();
      node.host.run("ip", "link", "set", "eth0", "address", `02:00:00:00:00:0${i}`);
      await node.ok("ADD", conf(), { netns });
      expect(pings(lan, "10.88.0.2")).toBe(true);
      expect(pings(lan, "fd88::2")).toBe(true);
      await node.ok("DEL", conf(), { netns });
    }
  });

  test.each(["l3", "l3s"])("mode %s: routed by the host, on its own subnet", async (mode) => {
    const routed = conf({ mode }, ["10.99.0.0/24"]);
    const prevResult = await node.ok("ADD", routed, { netns: c });
    expect(linkOf(c).linkinfo.info_data.mode).toBe(mode);
    await node.ok("CHECK", { ...routed, prevResult }, { netns: c });
    addAddress(node.host, "eth0", "10.88.0.200/24");
    lan.run("ip", "route", "add", "10.99.0.0/24", "via", "10.88.0.200");
    expect(pings(c, "10.88.0.50"), "no route").toBe(false);
    c.run("ip", "route", "add", "10.88.0.0/24", "dev", "eth0");
    expect(pings(c, "10.88.0.50")).toBe(true);
  });
});

describe("options", () => {
  test("mtu, up to the master's", async () => {
    const added = await node.ok("ADD", conf({ mtu: 1400 }), { netns: c });
    expect([linkOf(c).mtu, added.interfaces[0].mtu]).toEqual([1400, 1400]);
    const { code, msg } = await node.error("ADD", conf({ mtu: 1501 }), { netns: node.container() });
    expect({ code, msg }).toEqual({ code: 7, msg: "invalid MTU 1501, must be [0, master MTU(1500)]" });
  });

  test("without master: the interface of the default route", async () => {
    const { msg } = await node.error("ADD", conf({ master: "" }), { netns: c });
    expect(msg).toBe("no default route interface found");
    node.host.run("ip", "route", "add", "default", "dev", "eth0");
    const prevResult = await node.ok("ADD", conf({ master: "" }), { netns: c });
    expect(linkOf(c).link_index).toBe(linkOf(node.host).ifindex);
    node.host.run("ip", "route", "del", "default");
    await node.ok("CHECK", conf({ master: "", prevResult }), { netns: c });
    await node.ok("DEL", conf({ master: "", prevResult }), { netns: c });
    expect([namesIn(c), node.leases()]).toEqual([["lo"], []]);
  });

  test("linkInContainer: the master is in the container", async () => {
    c.run("ip", "link", "add", "inner", "up", "type", "veth", "peer", "name", "other");
    const inside = conf({ master: "inner", linkInContainer: true });
    const prevResult = await node.ok("ADD", inside, { netns: c });
    expect(linkOf(c)).toMatchObject({ link: "inner" });
    await node.ok("CHECK", { ...inside, prevResult }, { netns: c });
    c.run("ip", "link", "del", "inner");
    await node.ok("DEL", { ...inside, prevResult }, { netns: c });
    expect(node.leases()).toEqual([]);
    const missing = await node.error("ADD", inside, { netns: c });
    expect(missing.msg).toBe('failed to lookup master "inner": Link not found');
  });

  test("without IPAM: layer 2 only", async () => {
    const prevResult = await node.ok("ADD", conf({}, []), { netns: c });
    expect(linkOf(c).flags).toContain("LOWER_UP");
    expect(prevResult.ips).toBeUndefined();
    await node.ok("CHECK", conf({ prevResult }, []), { netns: c });
    await node.ok("DEL", conf({ prevResult }, []), { netns: c });
    expect(namesIn(c)).toEqual(["lo"]);
  });
});

describe("after another plugin", () => {
  const before = (more: object = {}) => ({
    cniVersion: "1.1.0",
    interfaces: [{ name: "eth0" }],
    ips: [{ address: "10.88.0.7/24", gateway: "10.88.0.50" }],
    routes: [{ dst: "10.77.0.0/16" }],
    ...more,
  });

  test("its interface is the master and its addresses go to ours, whose result takes its place", async () => {
    const chained = conf({ master: undefined, prevResult: before() }, []);
    const added = await node.ok("ADD", chained, { netns: c });
    expect(added).toMatchObject({
      interfaces: [{ name: "eth0", sandbox: c.path }],
      ips: [{ address: "10.88.0.7/24", interface: 0 }],
      routes: [{ dst: "10.77.0.0/16" }],
    });
    expect(pings(c, "10.88.0.50")).toBe(true);
    expect(ip(c, "route", "show", "10.77.0.0/16")).toMatchObject([{ gateway: "10.88.0.50" }]);
    await node.ok("CHECK", { ...chained, prevResult: added }, { netns: c });
    await node.ok("DEL", { ...chained, prevResult: added }, { netns: c });
    expect(namesIn(c)).toEqual(["lo"]);
  });

  test("IPAM of its own comes before the other's addresses", async () => {
    const added = await node.ok("ADD", conf({ master: undefined, prevResult: before() }), { netns: c });
    expect(added.ips.map((entry: { address: string }) => entry.address)).toEqual([
      "10.88.0.2/24",
      "fd88::2/64",
    ]);
  });

  test.each([[[]], [[{ name: "eth0" }, { name: "eth1" }]], [[{ name: "" }]]])(
    "interfaces %j",
    async (interfaces) => {
      const chained = conf({ master: undefined, prevResult: before({ interfaces }) });
      const { msg } = await node.error("ADD", chained, { netns: c });
      expect(msg).toBe("chained master failure. PrevResult lacks a single named interface");
      expect([namesIn(c), node.leases()]).toEqual([["lo"], []]);
    },
  );
});

describe("an ADD that fails leaves nothing", () => {
  test.each<[string, () => Conf, RegExp]>([
    ["master missing", () => conf({ master: "nope" }), /^failed to lookup master "nope": Link not found$/],
    ["IPAM plugin missing", () => conf({ ipam: { type: "nonesuch" } }), /nonesuch/],
    [
      "a route that the kernel refuses",
      () => conf({ ipam: { ...conf().ipam, routes: [{ dst: "10.77.0.0/16", gw: "172.31.0.1" }] } }),
      /10\.77\.0\.0\/16 via 172\.31\.0\.1/,
    ],
  ])("%s", async (_, bad, message) => {
    const before = node.state();
    const error = await node.error("ADD", bad(), { netns: c });
    expect(error.msg).toMatch(message);
    expect(error.details ?? "").not.toContain("could not be taken back");
    expect([namesIn(c), node.leases(), node.state().links]).toEqual([["lo"], [], before.links]);
    await node.ok("ADD", conf(), { netns: c });
  });

  test("the name is taken: what has it stays", async () => {
    await node.ok("ADD", conf(), { netns: c });
    const before = [linkOf(c).ifindex, node.leases()];
    const { msg } = await node.error("ADD", conf(), { netns: c, id: "c2" });
    expect(msg).toBe('interface "eth0" already exists in the container');
    expect([linkOf(c).ifindex, node.leases()]).toEqual(before);
  });
});

describe("DEL", () => {
  test.each(["no netns", "netns gone", "master gone", "link gone"])("with %s", async (what) => {
    const prevResult = await node.ok("ADD", conf(), { netns: c });
    if (what === "netns gone") c.close();
    if (what === "master gone") node.host.run("ip", "link", "del", "eth0");
    if (what === "link gone") c.run("ip", "link", "del", "eth0");
    const netns = what === "no netns" ? "" : c;
    await node.ok("DEL", conf({ prevResult, master: what === "master gone" ? "" : "eth0" }), { netns });
    expect(node.leases()).toEqual([]);
    if (what === "master gone") expect(namesIn(c)).toEqual(["lo"]);
  });
});

describe("CHECK tells what is broken", () => {
  test.each([
    ["ip addr del 10.88.0.2/24 dev eth0", {}, "lacks the address 10.88.0.2/24"],
    ["ip link del eth0", {}, "eth0 is missing"],
    ["true", { mode: "l3" }, "Container IPVlan mode l2 does not match expected value: l3"],
    ["true", { master: "lo" }, "interface eth0 is not on top of lo"],
  ])("after %s, with %o", async (command, more, message) => {
    const prevResult = await node.ok("ADD", conf(), { netns: c });
    c.run(...command.split(" "));
    expect((await node.error("CHECK", conf({ ...more, prevResult }), { netns: c })).msg).toContain(message);
  });
});

test("STATUS: 50 without the master, and what IPAM says; GC gives addresses back", async () => {
  await node.ok("STATUS", conf());
  await node.ok("STATUS", conf({ master: "" }));
  await node.ok("STATUS", conf({ master: "nope", linkInContainer: true }));
  for (const more of [{ master: "nope" }, { ipam: { ...conf().ipam, dataDir: "/proc/nowhere" } }])
    expect(await node.error("STATUS", conf(more))).toMatchObject({ code: 50 });
  await node.ok("ADD", conf(), { netns: c });
  await node.ok("ADD", conf(), { netns: node.container(), id: "c2" });
  await node.ok("GC", conf({ "cni.dev/valid-attachments": [{ containerID: "c1", ifname: "eth0" }] }));
  expect(node.leases()).toEqual(["10.88.0.2", "fd88::2"]);
});
