import {
  type Conf,
  ip,
  makeLan,
  makeNode,
  namesIn,
  pings,
  type TestNamespace,
  type TestNode,
} from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
let c: TestNamespace;
beforeEach(() => {
  node = makeNode();
  c = node.container();
});
afterEach(() => node.close());

const defaults = [{ dst: "0.0.0.0/0" }, { dst: "::/0" }];
const conf = (more: object = {}, subnets?: readonly string[]): Conf => {
  const made = node.conf("ptp", more, subnets);
  if (made.ipam && subnets === undefined) made.ipam = { ...made.ipam, routes: made.ipam.routes ?? defaults };
  return made;
};
const linkOf = (ns: TestNamespace, name: string) => ip(ns, "link", "show", "dev", name)[0];
const routesOf = (ns: TestNamespace, dev: string): string[] =>
  ["-4", "-6"].flatMap((family) =>
    ip(ns, family, "route", "show", "dev", dev)
      .map((r) =>
        [r.dst, r.gateway && `via ${r.gateway}`, r.prefsrc && `src ${r.prefsrc}`].filter(Boolean).join(" "),
      )
      .filter((text) => !text.startsWith("fe80"))
      .toSorted(),
  );

describe.each(specVersions)("cniVersion %s", (cniVersion) => {
  test("ADD, CHECK where there is one, DEL; nothing stays", async () => {
    const added = await node.ok("ADD", conf({ cniVersion }), { netns: c });
    const [name] = node.veths();
    if (atLeast(cniVersion, "0.3.0")) {
      const mtu = atLeast(cniVersion, "1.0.0") ? { mtu: 1500 } : {};
      expect(added.interfaces).toEqual([
        { name, mac: linkOf(node.host, name!).address, ...mtu },
        { name: "eth0", mac: linkOf(c, "eth0").address, sandbox: c.path, ...mtu },
      ]);
      expect(added.ips.map((each: { interface: number }) => each.interface)).toEqual([1, 1]);
    }
    const later = conf({ cniVersion, prevResult: added });
    if (atLeast(cniVersion, "0.4.0")) await node.ok("CHECK", later, { netns: c });
    for (let i = 0; i < 2; i++) await node.ok("DEL", later, { netns: c });
    expect([node.veths(), node.leases(), namesIn(c)]).toEqual([[], [], ["lo"]]);
  });
});

test("what ADD leaves on both ends", async () => {
  await node.ok("ADD", conf(), { netns: c });
  expect(routesOf(c, "eth0")).toEqual([
    "10.88.0.0/24 via 10.88.0.1 src 10.88.0.2",
    "10.88.0.1 src 10.88.0.2",
    "default via 10.88.0.1",
    "default via fd88::1",
    "fd88::/64 via fd88::1 src fd88::2",
    "fd88::1 src fd88::2",
  ]);
  const [name] = node.veths();
  expect(linkOf(node.host, name!)).toMatchObject({ operstate: "UP", ifalias: "tscni testnet c1 eth0" });
  expect(routesOf(node.host, name!)).toEqual(["10.88.0.2", "fd88::2"]);
  const found = ip(node.host, "addr", "show", "dev", name!, "scope", "global")[0].addr_info;
  const addresses = found.filter((a: { local?: string }) => a.local);
  expect(addresses.map((a: { local: string; prefixlen: number }) => `${a.local}/${a.prefixlen}`)).toEqual([
    "10.88.0.1/32",
    "fd88::1/128",
  ]);
  for (const key of ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"])
    expect(node.host.run("sysctl", "-n", key).trim(), key).toBe("1");
});

describe("packets", () => {
  test("the moment that ADD returns both families go to the host, other containers and the outside", async () => {
    const lan = makeLan(node, "192.0.2.1/24", "2001:db8::1/64");
    for (const address of ["192.0.2.2/24", "2001:db8::2/64"])
      node.host.run("ip", "addr", "add", address, "dev", "eth0", ...(address.includes(":") ? ["nodad"] : []));
    // Until their link-local addresses are proved unique neither side of that network can ask for neighbours.
    for (const side of [node.host, lan])
      await expect.poll(() => side.run("ip", "-6", "addr", "show", "tentative"), { timeout: 5000 }).toBe("");
    lan.run("ip", "route", "add", "10.88.0.0/24", "via", "192.0.2.2");
    lan.run("ip", "route", "add", "fd88::/64", "via", "2001:db8::2");
    const other = node.container();
    await node.ok("ADD", conf(), { netns: c });
    expect(pings(c, "fd88::1")).toBe(true);
    expect(pings(c, "10.88.0.1")).toBe(true);
    expect(pings(node.host, "fd88::2")).toBe(true);
    await node.ok("ADD", conf(), { netns: other, id: "c2" });
    for (const address of ["fd88::2", "10.88.0.2", "2001:db8::1", "192.0.2.1"])
      expect(pings(other, address), address).toBe(true);
    await node.ok("ADD", conf(), { netns: node.container(), id: "c3" });
    expect(pings(lan, "fd88::4"), "a container that has said nothing yet").toBe(true);
  });

  test("all of them by the host: where that does not forward, a neighbour of the subnet is not reached", async () => {
    const other = node.container();
    await node.ok("ADD", conf(), { netns: c });
    await node.ok("ADD", conf(), { netns: other, id: "c2" });
    expect(pings(c, "10.88.0.3")).toBe(true);
    node.host.run("sysctl", "-w", "net.ipv4.ip_forward=0");
    expect(pings(c, "10.88.0.3")).toBe(false);
    expect(pings(c, "10.88.0.1")).toBe(true);
    expect(pings(c, "10.88.0.4"), "an address that nobody has").toBe(false);
  });

  test("IPv6 works where host and container have it disabled by default", async () => {
    for (const ns of [node.host, c])
      for (const scope of ["all", "default"]) ns.run("sysctl", "-w", `net.ipv6.conf.${scope}.disable_ipv6=1`);
    await node.ok("ADD", conf(), { netns: c });
    expect(pings(c, "fd88::1")).toBe(true);
    expect(pings(node.host, "fd88::2")).toBe(true);
  });

  test("an address that was another container's answers at once", async () => {
    for (const netns of [c, node.container()]) {
      node.resetLeases();
      await node.ok("ADD", conf(), { netns });
      expect([pings(node.host, "10.88.0.2"), pings(node.host, "fd88::2")]).toEqual([true, true]);
      await node.ok("DEL", conf(), { netns });
    }
  });
});

describe("options", () => {
  test("mtu of both ends", async () => {
    const added = await node.ok("ADD", conf({ mtu: 1400 }), { netns: c });
    expect(added.interfaces.map((i: { mtu: number }) => i.mtu)).toEqual([1400, 1400]);
    expect([linkOf(c, "eth0").mtu, linkOf(node.host, node.veths()[0]!).mtu]).toEqual([1400, 1400]);
  });

  test("without IPAM: layer 2 only", async () => {
    const prevResult = await node.ok("ADD", conf({}, []), { netns: c });
    expect(prevResult).toMatchObject({ interfaces: [{}, { name: "eth0" }] });
    expect([prevResult.ips, linkOf(c, "eth0").operstate]).toEqual([undefined, "UP"]);
    await node.ok("CHECK", conf({ prevResult }, []), { netns: c });
    expect(pings(c, "10.88.0.1")).toBe(false);
    node.host.run("ip", "addr", "add", "10.88.0.1/24", "dev", node.veths()[0]!);
    c.run("ip", "addr", "add", "10.88.0.2/24", "dev", "eth0");
    expect(pings(c, "10.88.0.1")).toBe(true);
    await node.ok("DEL", conf({ prevResult }, []), { netns: c });
    expect(node.veths()).toEqual([]);
  });

  test("dns of the config takes the place of IPAM's", async () => {
    const dns = { nameservers: ["10.88.0.53"] };
    expect((await node.ok("ADD", conf({ dns }), { netns: c })).dns).toEqual(dns);
  });

  const withStatic = (...addresses: object[]) => conf({ ipam: { type: "static", addresses } });

  test("a gateway that IPAM does not name is the subnet's first address", async () => {
    const added = await node.ok("ADD", withStatic({ address: "10.88.0.7/24" }), { netns: c });
    expect(added.ips[0].gateway).toBe("10.88.0.1");
    expect(pings(c, "10.88.0.1")).toBe(true);
    const bad = withStatic({ address: "10.88.0.1/24" });
    const { code, msg } = await node.error("ADD", bad, { netns: node.container(), id: "c2" });
    expect({ code, msg }).toEqual({ code: 7, msg: "10.88.0.1/24 has no gateway" });
    expect(node.veths()).toHaveLength(1);
  });

  test("single addresses with a gateway of no subnet, two of a family with one gateway", async () => {
    const gateway = "169.254.1.1";
    const single = withStatic({ address: "10.88.0.7/32", gateway }, { address: "10.88.0.8/32", gateway });
    const prevResult = await node.ok("ADD", single, { netns: c });
    for (const address of ["10.88.0.7", "10.88.0.8"]) expect(pings(node.host, address)).toBe(true);
    expect(pings(c, gateway)).toBe(true);
    await node.ok("CHECK", { ...single, prevResult }, { netns: c });
  });
});

describe("an ADD that fails leaves nothing", () => {
  test.each<[string, () => Conf, RegExp]>([
    ["the IPAM plugin missing", () => conf({ ipam: { type: "nonesuch" } }), /nonesuch/],
    [
      "a subnet of another family than the route",
      () => conf({ ipam: { type: "static", addresses: [] } }),
      /missing IP config/,
    ],
    [
      "a route that the kernel refuses",
      () => conf({ ipam: { ...conf().ipam, routes: [{ dst: "10.77.0.0/16", gw: "172.31.0.1" }] } }),
      /10\.77\.0\.0\/16 via 172\.31\.0\.1/,
    ],
    ["an MTU that the kernel refuses", () => conf({ mtu: 10 }), /EINVAL/],
  ])("%s", async (_, bad, message) => {
    const before = node.state().links;
    const error = await node.error("ADD", bad(), { netns: c });
    expect(error.msg).toMatch(message);
    expect(error.details ?? "").not.toContain("could not be taken back");
    expect([namesIn(c), node.leases(), node.state().links]).toEqual([["lo"], [], before]);
    await node.ok("ADD", conf(), { netns: c });
  });

  test("the host refuses the route to the container", async () => {
    const before = [node.state().routes, node.state().links];
    // 127.0.0.0/8 is no destination for a route of the main table's kind: IPv6's loopback is refused by the kernel.
    const bad = conf({ ipam: { type: "static", addresses: [{ address: "::1/128", gateway: "fd88::1" }] } });
    const error = await node.error("ADD", bad, { netns: c });
    expect(error.details ?? "").not.toContain("could not be taken back");
    expect([node.state().routes, node.state().links]).toEqual(before);
  });

  test("the name is taken: what has it stays", async () => {
    await node.ok("ADD", conf(), { netns: c });
    const before = [linkOf(c, "eth0"), node.leases(), node.veths()];
    expect((await node.error("ADD", conf(), { netns: c, id: "c2" })).msg).toMatch(/already exists$/);
    expect([linkOf(c, "eth0"), node.leases(), node.veths()]).toEqual(before);
  });
});

test.each(["no netns", "netns gone", "link gone"])("DEL with %s", async (what) => {
  const prevResult = await node.ok("ADD", conf(), { netns: c });
  if (what === "netns gone") c.close();
  if (what === "link gone") c.run("ip", "link", "del", "eth0");
  await node.ok("DEL", conf({ prevResult }), { netns: what === "no netns" ? "" : c });
  expect([node.leases(), node.veths()]).toEqual([[], []]);
});

describe("CHECK tells what is broken", () => {
  const broken: [where: "host" | "container", command: string, message: string][] = [
    ["container", "ip addr del 10.88.0.2/24 dev eth0", "10.88.0.2/24"],
    ["container", "ip route del 10.88.0.0/24", "10.88.0.0/24"],
    ["container", "ip -6 route del default", "::/0"],
    ["container", "ip link set eth0 address 02:00:00:00:00:09", "02:00:00:00:00:09"],
    ["host", "ip addr del 10.88.0.1/32 dev HOST", "lacks the gateway's address 10.88.0.1"],
    ["host", "ip route del 10.88.0.2/32", "the host has no route to 10.88.0.2"],
    ["host", "ip -6 route del fd88::2/128", "the host has no route to fd88::2"],
    ["host", "ip link set HOST address 02:00:00:00:00:08", "02:00:00:00:00:08"],
  ];
  test.each(broken)("%s: %s", async (where, command, message) => {
    const prevResult = await node.ok("ADD", conf(), { netns: c });
    const ns = where === "host" ? node.host : c;
    ns.run(...command.replace("HOST", node.veths()[0]!).split(" "));
    expect((await node.error("CHECK", conf({ prevResult }), { netns: c })).msg).toContain(message);
  });
});

test("STATUS asks IPAM", async () => {
  await node.ok("STATUS", conf());
  expect(
    (await node.error("STATUS", conf({ ipam: { ...conf().ipam, dataDir: "/proc/nowhere" } }))).code,
  ).toBe(50);
});

test("GC removes links and leases of this network's containers that are gone", async () => {
  await node.ok("ADD", conf(), { netns: c });
  await node.ok("ADD", conf(), { netns: node.container(), id: "c2" });
  await node.ok("ADD", conf({ name: "other" }, ["10.99.0.0/24"]), { netns: node.container(), id: "c3" });
  node.host.run("ip", "link", "add", "veth0000000000a", "type", "veth", "peer", "name", "killed");
  await node.ok("GC", conf());
  expect(node.veths()).toHaveLength(5);
  await node.ok("GC", conf({ "cni.dev/valid-attachments": [{ containerID: "c1", ifname: "eth0" }] }));
  expect([node.veths().length, node.leases()]).toEqual([2, ["10.88.0.2", "fd88::2"]]);
  expect(linkOf(c, "eth0").operstate).toBe("UP");
});
