import { type Conf, ip, makeNode, type TestNamespace, type TestNode } from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
/** What lies behind the master. */
let outside: TestNamespace;
beforeEach(() => {
  node = makeNode();
  outside = node.container();
  node.host.run("ip", "link", "add", "eth0", "type", "veth", "peer", "uplink", "netns", outside.path);
  node.host.run("ip", "link", "set", "eth0", "up");
  outside.run("ip", "link", "set", "uplink", "up");
  for (const address of ["10.88.0.1/24", "fd88::1/64"])
    outside.run("ip", "addr", "add", address, "dev", "uplink", ...(address.includes(":") ? ["nodad"] : []));
});
afterEach(() => node.close());

const conf = (more: object = {}, subnets: readonly string[] = ["10.88.0.0/24", "fd88::/64"]): Conf => ({
  cniVersion: "1.1.0",
  name: "testnet",
  type: "macvlan",
  master: "eth0",
  ...(subnets.length > 0
    ? {
        ipam: {
          type: "host-local",
          dataDir: node.dataDir,
          ranges: subnets.map((subnet) => [{ subnet }]),
          routes: subnets.map((subnet) => ({ dst: subnet.includes(":") ? "::/0" : "0.0.0.0/0" })),
        },
      }
    : {}),
  ...more,
});
const linkOf = (ns: TestNamespace, name = "eth0") => ip(ns, "link", "show", "dev", name)[0];
const namesIn = (ns: TestNamespace): string[] => ip(ns, "link").map((link) => link.ifname);
const pings = (from: TestNamespace, address: string): boolean => {
  try {
    return from.run("ping", "-c1", "-W1", address).includes(" 1 received");
  } catch {
    return false;
  }
};

describe.each(specVersions)("cniVersion %s", (cniVersion) => {
  test("ADD, CHECK where there is one, DEL; nothing stays", async () => {
    const c = node.container();
    const added = await node.ok("ADD", conf({ cniVersion }), { netns: c });
    const { address, linkinfo } = linkOf(c);
    expect(linkinfo).toMatchObject({ info_kind: "macvlan", info_data: { mode: "bridge" } });
    if (atLeast(cniVersion, "0.3.0"))
      expect(added.interfaces).toEqual([
        {
          name: "eth0",
          mac: address,
          sandbox: c.path,
          ...(atLeast(cniVersion, "1.0.0") ? { mtu: 1500 } : {}),
        },
      ]);
    const addresses = added.ips?.map((each: { address: string }) => each.address) ?? [
      added.ip4.ip,
      added.ip6.ip,
    ];
    expect(addresses).toEqual(["10.88.0.2/24", "fd88::2/64"]);
    const later = conf({ cniVersion, prevResult: added });
    if (atLeast(cniVersion, "0.4.0")) await node.ok("CHECK", later, { netns: c });
    for (let i = 0; i < 2; i++) await node.ok("DEL", later, { netns: c });
    expect([namesIn(c), node.leases()]).toEqual([["lo"], []]);
  });
});

describe("packets", () => {
  test("the moment that ADD returns both families reach the outside and other containers, but not the host", async () => {
    const [a, b] = [node.container(), node.container()];
    node.host.run("ip", "addr", "add", "10.88.0.200/24", "dev", "eth0");
    await node.ok("ADD", conf(), { netns: a });
    expect(pings(a, "fd88::1")).toBe(true);
    expect(pings(a, "10.88.0.1")).toBe(true);
    await node.ok("ADD", conf(), { netns: b, id: "c2" });
    expect(pings(b, "fd88::2")).toBe(true);
    expect(pings(b, "10.88.0.2")).toBe(true);
    expect(pings(a, "10.88.0.200"), "a macvlan never reaches its master").toBe(false);
  });

  test("private keeps containers apart, and not from the outside", async () => {
    const [a, b] = [node.container(), node.container()];
    await node.ok("ADD", conf({ mode: "private" }), { netns: a });
    await node.ok("ADD", conf({ mode: "private" }), { netns: b, id: "c2" });
    expect(pings(b, "10.88.0.1")).toBe(true);
    expect(pings(b, "10.88.0.2")).toBe(false);
  });

  test("an address that another container had before answers at once: neighbours are told", async () => {
    const [a, b] = [node.container(), node.container()];
    const only = conf();
    for (const [range] of only.ipam.ranges)
      range.rangeStart = range.rangeEnd = range.subnet.replace(/0?[/].*/, "2");
    for (const netns of [a, b]) {
      await node.ok("ADD", only, { netns });
      expect(pings(outside, "10.88.0.2")).toBe(true);
      expect(pings(outside, "fd88::2")).toBe(true);
      await node.ok("DEL", only, { netns });
    }
  });
});

describe("options", () => {
  test.each(["private", "vepa", "passthru"])("mode %s, which CHECK compares", async (mode) => {
    const c = node.container();
    const prevResult = await node.ok("ADD", conf({ mode }), { netns: c });
    expect(linkOf(c).linkinfo.info_data.mode).toBe(mode);
    await node.ok("CHECK", conf({ mode, prevResult }), { netns: c });
    const { msg } = await node.error("CHECK", conf({ mode: "bridge", prevResult }), { netns: c });
    expect(msg).toMatch(/^interface eth0 is in macvlan mode \d, not 4$/);
  });

  test("mtu, up to the master's", async () => {
    const c = node.container();
    const added = await node.ok("ADD", conf({ mtu: 1400 }), { netns: c });
    expect([linkOf(c).mtu, added.interfaces[0].mtu]).toEqual([1400, 1400]);
    const { code, msg } = await node.error("ADD", conf({ mtu: 1501 }), { netns: node.container() });
    expect({ code, msg }).toEqual({ code: 7, msg: "invalid MTU 1501, must be [0, master MTU(1500)]" });
  });

  test("bcqueuelen", async () => {
    const c = node.container();
    await node.ok("ADD", conf({ bcqueuelen: 4321 }), { netns: c });
    expect(linkOf(c).linkinfo.info_data.bcqueuelen).toBe(4321);
  });

  test("without master: the interface of the default route, of either family", async () => {
    const c = node.container();
    expect((await node.error("ADD", conf({ master: "" }), { netns: c })).msg).toBe(
      "no default route interface found",
    );
    node.host.run("ip", "-6", "route", "add", "default", "dev", "eth0");
    const prevResult = await node.ok("ADD", conf({ master: "" }), { netns: c });
    expect(linkOf(c).link_index).toBe(linkOf(node.host).ifindex);
    node.host.run("ip", "-6", "route", "del", "default");
    await node.ok("CHECK", conf({ master: "", prevResult }), { netns: c });
  });

  test("linkInContainer: the master is in the container", async () => {
    const c = node.container();
    c.run("ip", "link", "add", "inner", "up", "type", "veth", "peer", "name", "other");
    c.run("ip", "link", "set", "other", "up");
    const inside = conf({ master: "inner", linkInContainer: true });
    const prevResult = await node.ok("ADD", inside, { netns: c });
    expect(linkOf(c)).toMatchObject({ link: "inner" });
    await node.ok("CHECK", { ...inside, prevResult }, { netns: c });
    c.run("ip", "link", "del", "inner");
    await node.ok("DEL", { ...inside, prevResult }, { netns: c });
    expect(node.leases()).toEqual([]);
  });

  const [fromConf, fromEnv, fromRuntime] = ["02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"];
  test.each([
    ["of the config", { mac: fromConf.toUpperCase() }, "", fromConf],
    ["of CNI_ARGS over that", { mac: fromConf }, `IgnoreUnknown=1;K8S_POD_NAME=x;MAC=${fromEnv}`, fromEnv],
    [
      "of the capability over both",
      { mac: fromConf, runtimeConfig: { mac: fromRuntime.replaceAll(":", "-") } },
      `IgnoreUnknown=1;MAC=${fromEnv}`,
      fromRuntime,
    ],
  ])("MAC address %s", async (_, more, args, expected) => {
    const c = node.container();
    const added = await node.ok("ADD", conf(more), { netns: c, args });
    expect([linkOf(c).address, added.interfaces[0].mac]).toEqual([expected, expected]);
  });

  test("dns of the config takes the place of IPAM's", async () => {
    const dns = { nameservers: ["10.88.0.53"] };
    expect((await node.ok("ADD", conf({ dns }), { netns: node.container() })).dns).toEqual(dns);
  });

  test("without IPAM: layer 2 only", async () => {
    const c = node.container();
    const prevResult = await node.ok("ADD", conf({}, []), { netns: c });
    expect([linkOf(c).operstate, prevResult.ips]).toEqual(["UP", undefined]);
    expect(c.run("sysctl", "-n", "net.ipv6.conf.eth0.accept_ra").trim()).toBe("1");
    await node.ok("CHECK", conf({ prevResult }, []), { netns: c });
    await node.ok("DEL", conf({ prevResult }, []), { netns: c });
    expect(namesIn(c)).toEqual(["lo"]);
  });
});

describe("an ADD that fails leaves nothing", () => {
  test.each<[string, () => Conf, RegExp]>([
    ["master missing", () => conf({ master: "nope" }), /^failed to lookup master "nope": Link not found$/],
    ["the IPAM plugin missing", () => conf({ ipam: { type: "nonesuch" } }), /nonesuch/],
    [
      "no address left",
      () =>
        conf({
          ipam: {
            ...conf().ipam,
            ranges: [[{ subnet: "10.88.0.0/30", rangeStart: "10.88.0.1", rangeEnd: "10.88.0.1" }]],
          },
        }),
      /no IP addresses available/,
    ],
    [
      "a route that the kernel refuses",
      () => conf({ ipam: { ...conf().ipam, routes: [{ dst: "10.77.0.0/16", gw: "172.31.0.1" }] } }),
      /10\.77\.0\.0\/16 via 172\.31\.0\.1/,
    ],
  ])("%s", async (_, bad, message) => {
    const c = node.container();
    const before = node.state().links;
    const error = await node.error("ADD", bad(), { netns: c });
    expect(error.msg).toMatch(message);
    expect(error.details ?? "").not.toContain("could not be taken back");
    expect([namesIn(c), node.leases(), node.state().links]).toEqual([["lo"], [], before]);
    await node.ok("ADD", conf(), { netns: c });
  });

  test("the name is taken: what has it stays", async () => {
    const c = node.container();
    await node.ok("ADD", conf(), { netns: c });
    const before = [linkOf(c), node.leases()];
    const { msg } = await node.error("ADD", conf(), { netns: c, id: "c2" });
    expect(msg).toBe('interface "eth0" already exists in the container');
    expect([linkOf(c), node.leases()]).toEqual(before);
  });
});

describe("DEL", () => {
  test.each(["no netns", "netns gone", "master gone", "link gone"])("with %s", async (what) => {
    const c = node.container();
    const prevResult = await node.ok("ADD", conf(), { netns: c });
    if (what === "netns gone") c.close();
    if (what === "master gone") node.host.run("ip", "link", "del", "eth0");
    if (what === "link gone") c.run("ip", "link", "del", "eth0");
    await node.ok("DEL", conf({ prevResult }), { netns: what === "no netns" ? "" : c });
    expect(node.leases()).toEqual([]);
    if (what === "master gone") expect(namesIn(c)).toEqual(["lo"]);
  });
});

describe("CHECK tells what is broken", () => {
  test.each([
    ["ip addr del 10.88.0.2/24 dev eth0", "lacks the address 10.88.0.2/24"],
    ["ip -6 route del default", "::/0"],
    ["ip link set eth0 address 02:00:00:00:00:09", "02:00:00:00:00:09"],
    ["ip link del eth0", "eth0 is missing"],
  ])("after %s", async (command, message) => {
    const c = node.container();
    const prevResult = await node.ok("ADD", conf(), { netns: c });
    c.run(...command.split(" "));
    expect((await node.error("CHECK", conf({ prevResult }), { netns: c })).msg).toContain(message);
  });

  test("when the master is another", async () => {
    const c = node.container();
    const prevResult = await node.ok("ADD", conf(), { netns: c });
    node.host.run("ip", "link", "add", "other", "type", "veth");
    const { msg } = await node.error("CHECK", conf({ master: "other", prevResult }), { netns: c });
    expect(msg).toBe("interface eth0 is not on top of other");
  });
});

test("STATUS: 50 without the master or room on it, and what IPAM says", async () => {
  await node.ok("STATUS", conf());
  for (const [more, msg] of [
    [{ master: "nope" }, 'failed to lookup master "nope": Link not found'],
    [{ master: "" }, "no default route interface found"],
    [{ ipam: { ...conf().ipam, dataDir: "/proc/nowhere" } }, expect.any(String)],
  ])
    expect(await node.error("STATUS", conf(more as object))).toMatchObject({ code: 50, msg });
  await node.ok("STATUS", conf({ master: "nope", linkInContainer: true }));
});

test("GC gives back the addresses of containers that are gone", async () => {
  const gone = node.container();
  await node.ok("ADD", conf(), { netns: node.container() });
  await node.ok("ADD", conf(), { netns: gone, id: "c2" });
  gone.close();
  await node.ok("GC", conf({ "cni.dev/valid-attachments": [{ containerID: "c1", ifname: "eth0" }] }));
  expect(node.leases()).toEqual(["10.88.0.2", "fd88::2"]);
});
