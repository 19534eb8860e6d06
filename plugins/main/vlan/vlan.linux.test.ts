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
  needs(test, "vlan");
  node = makeNode();
  lan = makeLan(node);
  c = node.container();
});
afterEach(() => node?.close());

const conf = (more: object = {}, subnets?: string[]): Conf =>
  node.conf("vlan", { master: "eth0", vlanId: 5, ...more }, subnets);
const linkOf = (ns: TestNamespace, name = "eth0") => ip(ns, "link", "show", "dev", name)[0];

/** Somebody on the network who is in a VLAN. */
function joinVlan(id: number, ...addresses: string[]): TestNamespace {
  const member = node.container();
  const [name, vlan] = [`v${id}`, String(id)];
  lan.run("ip", "link", "add", name, "link", "uplink", "netns", member.path, "type", "vlan", "id", vlan);
  member.run("ip", "link", "set", name, "up");
  for (const address of addresses) addAddress(member, name, address);
  return member;
}

describe.each(specVersions)("cniVersion %s", (cniVersion) => {
  test("ADD, CHECK where there is one, DEL; nothing stays", async () => {
    const added = await node.ok("ADD", conf({ cniVersion }), { netns: c });
    const { address, linkinfo } = linkOf(c);
    expect(linkinfo).toMatchObject({ info_kind: "vlan", info_data: { id: 5, protocol: "802.1Q" } });
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

test("packets reach who is in the VLAN the moment that ADD returns, and nobody else", async () => {
  joinVlan(5, "10.88.0.50/24", "fd88::50/64");
  joinVlan(6, "10.88.0.60/24");
  addAddress(lan, "uplink", "10.88.0.99/24");
  await node.ok("ADD", conf(), { netns: c });
  expect(pings(c, "fd88::50")).toBe(true);
  expect(pings(c, "10.88.0.50")).toBe(true);
  expect(pings(c, "10.88.0.60"), "another VLAN").toBe(false);
  expect(pings(c, "10.88.0.99"), "untagged").toBe(false);
  const other = node.container();
  await node.ok("ADD", conf({ vlanId: 7 }), { netns: other, id: "c2" });
  expect(pings(other, "10.88.0.2"), "a container in another VLAN").toBe(false);
});

test("an address that another container had before answers at once: neighbours are told", async () => {
  const member = joinVlan(5, "10.88.0.50/24", "fd88::50/64");
  for (const [i, netns] of [c, node.container()].entries()) {
    node.resetLeases();
    // A VLAN's link has its master's MAC address: only with another is there something to tell.
    node.host.run("ip", "link", "set", "eth0", "address", `02:00:00:00:00:0${i}`);
    await node.ok("ADD", conf(), { netns });
    expect(pings(member, "10.88.0.2")).toBe(true);
    expect(pings(member, "fd88::2")).toBe(true);
    await node.ok("DEL", conf(), { netns });
  }
});

describe("options", () => {
  test("mtu, up to the master's", async () => {
    const added = await node.ok("ADD", conf({ mtu: 1400 }), { netns: c });
    expect([linkOf(c).mtu, added.interfaces[0].mtu]).toEqual([1400, 1400]);
    const { code, msg } = await node.error("ADD", conf({ mtu: 1501 }), { netns: node.container() });
    expect({ code, msg }).toEqual({ code: 7, msg: "invalid MTU 1501, must be [0, master MTU(1500)]" });
  });

  test("linkInContainer: the master is in the container, and the name may be the host's", async () => {
    c.run("ip", "link", "add", "inner", "up", "type", "veth", "peer", "name", "other");
    c.run("ip", "link", "set", "other", "up");
    const inside = conf({ master: "inner", linkInContainer: true });
    await node.ok("STATUS", inside);
    const prevResult = await node.ok("ADD", inside, { netns: c });
    expect(linkOf(c)).toMatchObject({ link: "inner" });
    await node.ok("CHECK", { ...inside, prevResult }, { netns: c });
    c.run("ip", "link", "del", "inner");
    await node.ok("DEL", { ...inside, prevResult }, { netns: c });
    expect(node.leases()).toEqual([]);
  });

  test("dns of the config takes the place of IPAM's", async () => {
    const dns = { nameservers: ["10.88.0.53"] };
    expect((await node.ok("ADD", conf({ dns }), { netns: c })).dns).toEqual(dns);
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

describe("an ADD that fails leaves nothing", () => {
  const ipam = (more: object) => conf({ ipam: { ...conf().ipam, ...more } });
  test.each<[string, () => Conf, RegExp]>([
    ["master missing", () => conf({ master: "nope" }), /^failed to lookup master "nope": Link not found$/],
    ["IPAM plugin missing", () => conf({ ipam: { type: "nonesuch" } }), /nonesuch/],
    [
      "a route that the kernel refuses",
      () => ipam({ routes: [{ dst: "10.77.0.0/16", gw: "172.31.0.1" }] }),
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
    const { msg } = await node.error("ADD", conf({ vlanId: 6 }), { netns: c, id: "c2" });
    expect(msg).toBe('interface "eth0" already exists in the container');
    expect([linkOf(c).ifindex, node.leases()]).toEqual(before);
  });

  test("another container has the VLAN: it keeps it", async () => {
    await node.ok("ADD", conf(), { netns: c });
    const other = node.container();
    const { msg } = await node.error("ADD", conf(), { netns: other, id: "c2" });
    expect(msg).toContain("VLAN device already exists");
    expect([namesIn(c), namesIn(other), node.leases().length]).toEqual([["eth0", "lo"], ["lo"], 2]);
  });
});

describe("DEL", () => {
  test.each(["no netns", "netns gone", "master gone", "link gone"])("with %s", async (what) => {
    const prevResult = await node.ok("ADD", conf(), { netns: c });
    if (what === "netns gone") c.close();
    if (what === "master gone") node.host.run("ip", "link", "del", "eth0");
    if (what === "link gone") c.run("ip", "link", "del", "eth0");
    await node.ok("DEL", conf({ prevResult }), { netns: what === "no netns" ? "" : c });
    expect(node.leases()).toEqual([]);
    if (what === "master gone") expect(namesIn(c)).toEqual(["lo"]);
  });

  test("with wrong values in the config", async () => {
    await node.ok("ADD", conf(), { netns: c });
    await node.ok("DEL", conf({ master: "", vlanId: 9999, mtu: -1 }), { netns: c });
    expect([namesIn(c), node.leases()]).toEqual([["lo"], []]);
  });
});

describe("CHECK tells what is broken", () => {
  test.each([
    ["ip addr del 10.88.0.2/24 dev eth0", {}, "lacks the address 10.88.0.2/24"],
    ["ip link set eth0 address 02:00:00:00:00:09", {}, "02:00:00:00:00:09"],
    ["ip link del eth0", {}, "eth0 is missing"],
    ["true", { vlanId: 6 }, "interface eth0 is in VLAN 5, not 6"],
    ["true", { mtu: 1400 }, "interface eth0 has MTU 1500, not 1400"],
    ["true", { master: "lo" }, "interface eth0 is not on top of lo"],
    ["true", { master: "nope" }, 'failed to lookup master "nope"'],
  ])("after %s, with %o", async (command, more, message) => {
    const prevResult = await node.ok("ADD", conf(), { netns: c });
    c.run(...command.split(" "));
    expect((await node.error("CHECK", conf({ ...more, prevResult }), { netns: c })).msg).toContain(message);
  });
});

test("STATUS: 50 without the master, and what IPAM says", async () => {
  await node.ok("STATUS", conf());
  const unusable = { ...conf().ipam, dataDir: "/proc/nowhere" };
  for (const [more, msg] of [
    [{ master: "nope" }, 'failed to lookup master "nope": Link not found'],
    [{ ipam: unusable }, expect.any(String)],
  ] as const)
    expect(await node.error("STATUS", conf(more))).toMatchObject({ code: 50, msg });
});

test("GC gives back the addresses of containers that are gone", async () => {
  const gone = node.container();
  await node.ok("ADD", conf(), { netns: c });
  await node.ok("ADD", conf({ vlanId: 6 }), { netns: gone, id: "c2" });
  gone.close();
  await node.ok("GC", conf({ "cni.dev/valid-attachments": [{ containerID: "c1", ifname: "eth0" }] }));
  expect(node.leases()).toEqual(["10.88.0.2", "fd88::2"]);
});
