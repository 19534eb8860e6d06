import { cidrText, ipText } from "@tscni/addr";
import { ip } from "@tscni/test-support";
import { describe, expect, test } from "vitest";
import {
  addAddress,
  deleteAddress,
  IFA_F_NODAD,
  IFA_F_NOPREFIXROUTE,
  IFA_F_PERMANENT,
  IFA_F_TENTATIVE,
  listAddresses,
} from "./addresses.ts";
import { createLink, getLink, setLink } from "./links.ts";
import { assignNamespaceId, namespaceId } from "./namespaces.ts";
import {
  deleteNeighbour,
  flushNeighbours,
  listNeighbours,
  NTF_PROXY,
  NUD_NOARP,
  NUD_PERMANENT,
  NUD_STALE,
  setNeighbour,
} from "./neighbours.ts";
import { addRoute, deleteRoute, listRoutes, type Route, type RouteMode } from "./routes.ts";
import { addRule, deleteRule, listRules } from "./rules.ts";
import { cidrOf, ipOf, newPlace, type Place, thrownBy } from "./testing.ts";

/** A namespace with a link that is up and has a carrier. */
function newLink(): Place & { index: number } {
  const place = newPlace();
  const { index } = createLink(place.netlink, { name: "e0", kind: "veth", veth: { peer: { name: "p0" } } });
  for (const name of ["e0", "p0"]) setLink(place.netlink, { name }, { up: true });
  return { ...place, index };
}

describe("addresses", () => {
  const shown = ({ ns }: Place, dev = "e0") => ip(ns, "addr", "show", "dev", dev)[0].addr_info;

  test("added with all that an address can have, and listed so", () => {
    const place = newLink();
    const { netlink, index } = place;
    addAddress(netlink, {
      index,
      cidr: cidrOf("10.1.2.3/24"),
      broadcast: ipOf("10.1.2.255"),
      label: "e0:x",
      scope: 253,
      flags: IFA_F_NOPREFIXROUTE,
      preferred: 1000,
      valid: 2000,
    });
    expect(shown(place)).toContainEqual(
      expect.objectContaining({
        local: "10.1.2.3",
        prefixlen: 24,
        broadcast: "10.1.2.255",
        label: "e0:x",
        scope: "link",
        noprefixroute: true,
        preferred_life_time: 1000,
        valid_life_time: 2000,
      }),
    );
    const [found] = listAddresses(netlink, { index, family: 4 });
    expect(found).toMatchObject({ cidr: cidrOf("10.1.2.3/24"), label: "e0:x", scope: 253, preferred: 1000 });
    expect(found!.flags! & IFA_F_NOPREFIXROUTE).not.toBe(0);
  });

  test("IPv6 without duplicate address detection is usable at once", () => {
    const place = newLink();
    const { netlink, index } = place;
    addAddress(netlink, { index, cidr: cidrOf("fd00::1/64"), flags: IFA_F_NODAD });
    addAddress(netlink, { index, cidr: cidrOf("fd00::2/64") });
    const flags = (text: string) =>
      listAddresses(netlink, { index, family: 6 }).find((a) => cidrText(a.cidr) === text)!.flags!;
    expect(flags("fd00::1/64") & (IFA_F_TENTATIVE | IFA_F_PERMANENT)).toBe(IFA_F_PERMANENT);
    expect(flags("fd00::2/64") & IFA_F_TENTATIVE).not.toBe(0);
    expect(shown(place).find((a: { local: string }) => a.local === "fd00::1").nodad).toBe(true);
  });

  test("with a peer", () => {
    const place = newLink();
    const { netlink, index } = place;
    const address = { index, cidr: cidrOf("10.9.0.1/32"), peer: ipOf("10.9.0.2") };
    addAddress(netlink, address);
    expect(shown(place)).toContainEqual(expect.objectContaining({ local: "10.9.0.1", address: "10.9.0.2" }));
    expect(listAddresses(netlink, { index, family: 4 })).toMatchObject([address]);
    deleteAddress(netlink, address);
    expect(listAddresses(netlink, { index, family: 4 })).toEqual([]);
  });

  test("twice is EEXIST, deleting what is not there EADDRNOTAVAIL, a link that is not there ENODEV", () => {
    const { netlink, index } = newLink();
    for (const text of ["10.1.2.3/24", "fd00::1/64"]) {
      const address = { index, cidr: cidrOf(text) };
      addAddress(netlink, address);
      expect(thrownBy(() => addAddress(netlink, address))).toMatchObject({
        code: "EEXIST",
        call: "RTM_NEWADDR",
        subject: `${text} on index ${index}`,
      });
      deleteAddress(netlink, address);
      expect(thrownBy(() => deleteAddress(netlink, address))).toMatchObject({ code: "EADDRNOTAVAIL" });
      expect(thrownBy(() => addAddress(netlink, { ...address, index: 999 }))).toMatchObject({
        code: "ENODEV",
      });
    }
  });

  test("listed by link and by family", () => {
    const { netlink, index } = newLink();
    const other = getLink(netlink, { name: "p0" })!.index;
    addAddress(netlink, { index, cidr: cidrOf("10.0.0.1/24") });
    addAddress(netlink, { index: other, cidr: cidrOf("10.0.0.2/24") });
    addAddress(netlink, { index: other, cidr: cidrOf("fd00::2/64"), scope: 0 });
    const texts = (filter: Parameters<typeof listAddresses>[1]) =>
      listAddresses(netlink, filter)
        .map((address) => cidrText(address.cidr))
        .filter((text) => !text.startsWith("fe80"))
        .sort();
    expect(texts({ index: other })).toEqual(["10.0.0.2/24", "fd00::2/64"]);
    expect(texts({ family: 4 })).toEqual(["10.0.0.1/24", "10.0.0.2/24"]);
    expect(texts({ index: other, family: 6 })).toEqual(["fd00::2/64"]);
  });
});

describe("routes", () => {
  function newRouter() {
    const place = newLink();
    addAddress(place.netlink, { index: place.index, cidr: cidrOf("10.1.0.1/24") });
    addAddress(place.netlink, { index: place.index, cidr: cidrOf("fd00::1/64"), flags: IFA_F_NODAD });
    return place;
  }
  const shown = ({ ns }: Place, family: string, ...args: string[]) =>
    ip(ns, family, "route", "show", ...args);

  test.each<[string, Omit<Route, "destination">, string, object]>([
    ["10.2.0.0/24", { gateway: ipOf("10.1.0.9") }, "main", { gateway: "10.1.0.9", dev: "e0" }],
    ["0.0.0.0/0", { gateway: ipOf("10.1.0.9"), priority: 50 }, "main", { dst: "default", metric: 50 }],
    [
      "10.2.0.0/24",
      { scope: 253, preferredSource: ipOf("10.1.0.1") },
      "main",
      { scope: "link", prefsrc: "10.1.0.1" },
    ],
    ["10.2.0.0/24", { gateway: ipOf("10.1.0.9"), table: 100 }, "100", { gateway: "10.1.0.9" }],
    ["10.2.0.0/24", { gateway: ipOf("10.1.0.9"), table: 70_000 }, "70000", { gateway: "10.1.0.9" }],
    ["10.2.0.0/24", { gateway: ipOf("172.31.0.1"), onlink: true }, "main", { flags: ["onlink"] }],
    ["10.2.0.0/24", { gateway: ipOf("fd00::9") }, "main", { via: { family: "inet6", host: "fd00::9" } }],
    [
      "10.2.0.0/24",
      { gateway: ipOf("10.1.0.9"), metrics: { mtu: 1300, advmss: 1200 } },
      "main",
      { metrics: [{ mtu: 1300, advmss: 1200 }] },
    ],
    ["10.2.0.0/24", { type: 6 }, "main", { type: "blackhole" }],
    ["fd02::/64", { gateway: ipOf("fd00::9") }, "main", { gateway: "fd00::9", metric: 1024 }],
    ["::/0", { gateway: ipOf("fd00::9"), priority: 7 }, "main", { dst: "default", metric: 7 }],
    ["fd02::/64", { table: 1000, protocol: 4 }, "1000", { protocol: "static", dev: "e0" }],
    ["fd02::/64", { metrics: { mtu: 1300 } }, "main", { metrics: [{ mtu: 1300 }] }],
  ])("to %s with %o", (destination, rest, table, expected) => {
    const place = newRouter();
    const { netlink } = place;
    const index = rest.type === undefined ? place.index : undefined;
    const route = { destination: cidrOf(destination), index, ...rest };
    addRoute(netlink, route);
    const family = route.destination.ip.family;
    const key = destination.endsWith("/0") ? "default" : destination;
    expect(shown(place, `-${family}`, "table", table, key)).toMatchObject([expected]);
    const found = listRoutes(netlink, { family, table: rest.table ?? 254 });
    expect(found.filter((r) => cidrText(r.destination) === destination)).toMatchObject([route]);
    expect(thrownBy(() => addRoute(netlink, route))).toMatchObject({ code: "EEXIST", call: "RTM_NEWROUTE" });
    deleteRoute(netlink, route);
    expect(shown(place, `-${family}`, "table", table, key)).toEqual([]);
    expect(thrownBy(() => deleteRoute(netlink, route))).toMatchObject({
      code: "ESRCH",
      call: "RTM_DELROUTE",
    });
  });

  test("errors name the route and carry the kernel's words", () => {
    const { netlink } = newRouter();
    const route = { destination: cidrOf("10.9.0.0/16"), gateway: ipOf("10.77.0.1"), table: 300 };
    expect(thrownBy(() => addRoute(netlink, route))).toMatchObject({
      code: "ENETUNREACH",
      message: "RTM_NEWROUTE 10.9.0.0/16 via 10.77.0.1 table 300: ENETUNREACH: Nexthop has invalid gateway",
    });
  });

  test("add, append, prepend and replace", () => {
    const { netlink, index } = newRouter();
    const destination = cidrOf("10.2.0.0/24");
    const put = (gateway: string, mode?: RouteMode) =>
      addRoute(netlink, { destination, index, gateway: ipOf(gateway) }, mode);
    const gateways = () =>
      listRoutes(netlink, { family: 4, index })
        .filter((route) => cidrText(route.destination) === "10.2.0.0/24")
        .map((route) => ipText(route.gateway!));
    put("10.1.0.2");
    expect(thrownBy(() => put("10.1.0.3"))).toMatchObject({ code: "EEXIST" });
    put("10.1.0.3", "append");
    put("10.1.0.4", "prepend");
    expect(gateways()).toEqual(["10.1.0.4", "10.1.0.2", "10.1.0.3"]);
    for (const mode of ["append", "prepend"] as const)
      expect(thrownBy(() => put("10.1.0.3", mode))).toMatchObject({ code: "EEXIST" });
    put("10.1.0.5", "replace");
    expect(gateways()).toEqual(["10.1.0.5", "10.1.0.2", "10.1.0.3"]);
  });

  test.each(["append", "prepend"] as const)("IPv6: %s makes one route of several next hops", (mode) => {
    const { netlink, index } = newRouter();
    const destination = cidrOf("fd02::/64");
    for (const gateway of ["fd00::2", "fd00::3"])
      addRoute(netlink, { destination, index, gateway: ipOf(gateway) }, mode);
    const [found, ...more] = listRoutes(netlink, { family: 6, index }).filter(
      (route) => cidrText(route.destination) === "fd02::/64",
    );
    expect(more).toEqual([]);
    expect(found!.nextHops!.map((hop) => [hop.index, ipText(hop.gateway!), hop.weight]).sort()).toEqual([
      [index, "fd00::2", 1],
      [index, "fd00::3", 1],
    ]);
  });

  test("several next hops given at once", () => {
    const place = newRouter();
    const nextHops = [
      { index: place.index, gateway: ipOf("10.1.0.2"), weight: 1, onlink: false },
      { index: place.index, gateway: ipOf("10.99.0.3"), weight: 20, onlink: true },
      { index: place.index, gateway: ipOf("fd00::3"), weight: 3, onlink: false },
    ];
    const destination = cidrOf("10.2.0.0/24");
    addRoute(place.netlink, { destination, nextHops });
    expect(shown(place, "-4", "10.2.0.0/24")[0].nexthops).toMatchObject([
      { gateway: "10.1.0.2", weight: 1 },
      { gateway: "10.99.0.3", weight: 20, flags: ["onlink"] },
      { via: { host: "fd00::3" }, weight: 3 },
    ]);
    const found = listRoutes(place.netlink, { family: 4, index: place.index });
    expect(found.find((route) => route.nextHops)).toMatchObject({ destination, nextHops });
  });

  test("listed by link, table and family; a table that does not exist is empty", () => {
    const { netlink } = newRouter();
    const other = getLink(netlink, { name: "p0" })!.index;
    addRoute(netlink, { destination: cidrOf("10.7.0.0/24"), index: other, scope: 253 });
    const texts = (filter: Parameters<typeof listRoutes>[1]) =>
      listRoutes(netlink, filter).map((route) => cidrText(route.destination));
    expect(texts({ family: 4, table: 254 })).toEqual(["10.1.0.0/24", "10.7.0.0/24"]);
    expect(texts({ family: 4, table: 254, index: other })).toEqual(["10.7.0.0/24"]);
    expect(texts({ index: other })).not.toContain("fd00::/64");
    expect(texts({ table: 254 })).toContain("fd00::/64");
    expect(texts({})).toContain("10.1.0.1/32"); // of the local table
    expect(texts({ table: 4242 })).toEqual([]);
  });
});

describe("rules", () => {
  test.each<[Parameters<typeof addRule>[1], object]>([
    [
      { family: 4, source: cidrOf("10.1.0.5/32"), table: 100, priority: 500 },
      { src: "10.1.0.5", table: "100" },
    ],
    [
      { family: 4, destination: cidrOf("10.2.0.0/16"), table: 7000, priority: 501 },
      { dst: "10.2.0.0", dstlen: 16, table: "7000" },
    ],
    [
      { family: 6, source: cidrOf("fd00::/64"), table: 100, priority: 502 },
      { src: "fd00::", srclen: 64 },
    ],
    [
      { family: 4, mark: 0x2000, markMask: 0x2000, table: 100, priority: 503 },
      { fwmark: "0x2000", fwmask: "0x2000" },
    ],
    [
      { family: 4, inName: "e0", invert: true, table: 100, priority: 504 },
      { iif: "e0", not: null },
    ],
    [
      { family: 6, outName: "e0", table: 254, suppressPrefix: 0, priority: 505 },
      { oif: "e0", suppress_prefixlen: 0 },
    ],
    [{ family: 4, action: 6, priority: 506 }, { action: "blackhole" }],
  ])("%o", (rule, expected) => {
    const { netlink, ns } = newLink();
    addRule(netlink, rule);
    const shown = () =>
      ip(ns, `-${rule.family}`, "rule", "show").filter((found) => found.priority === rule.priority);
    expect(shown()).toMatchObject([expected]);
    expect(listRules(netlink, { family: rule.family })).toContainEqual(expect.objectContaining(rule));
    expect(thrownBy(() => addRule(netlink, rule))).toMatchObject({ code: "EEXIST", call: "RTM_NEWRULE" });
    deleteRule(netlink, rule);
    expect(shown()).toEqual([]);
    expect(thrownBy(() => deleteRule(netlink, rule))).toMatchObject({ code: "ENOENT" });
  });

  test("the kernel's own rules are listed", () => {
    const { netlink } = newLink();
    const own = listRules(netlink).map((rule) => [rule.family, rule.priority, rule.table]);
    expect(own).toEqual([
      [4, 0, 255],
      [4, 32766, 254],
      [4, 32767, 253],
      [6, 0, 255],
      [6, 32766, 254],
    ]);
  });
});

describe("neighbours", () => {
  const shown = ({ ns }: Place) => ip(ns, "neigh", "show", "dev", "e0");

  test("set, replaced, listed, deleted", () => {
    const place = newLink();
    const { netlink, index } = place;
    for (const text of ["10.1.0.9", "fd00::9"]) {
      const destination = ipOf(text);
      setNeighbour(netlink, { index, destination, address: "02:00:00:00:00:09" });
      expect(shown(place)).toMatchObject([{ dst: text, lladdr: "02:00:00:00:00:09", state: ["PERMANENT"] }]);
      setNeighbour(netlink, { index, destination, address: "02:00:00:00:00:0a", state: NUD_STALE });
      // The kernel has entries of its own for the multicast groups that it talks to.
      const own = listNeighbours(netlink, { index, family: destination.family });
      expect(own.filter((entry) => entry.state !== NUD_NOARP)).toEqual([
        { index, destination, address: "02:00:00:00:00:0a", state: NUD_STALE, flags: 0 },
      ]);
      deleteNeighbour(netlink, { index, destination });
      expect(
        thrownBy(() => deleteNeighbour(netlink, { index, destination: ipOf("10.1.0.77") })),
      ).toMatchObject({
        code: "ENOENT",
        call: "RTM_DELNEIGH",
        subject: `10.1.0.77 on index ${index}`,
      });
      flushNeighbours(netlink, index);
      expect(shown(place)).toEqual([]);
    }
  });

  test("flush takes those of one link only, and leaves what resolves nothing", () => {
    const { netlink, index, ns } = newLink();
    const other = getLink(netlink, { name: "p0" })!.index;
    for (let i = 1; i <= 100; i++)
      setNeighbour(netlink, { index, destination: ipOf(`10.1.0.${i}`), address: "02:00:00:00:00:09" });
    setNeighbour(netlink, { index: other, destination: ipOf("10.1.0.1"), address: "02:00:00:00:00:09" });
    setNeighbour(netlink, { index, destination: ipOf("10.1.1.1"), state: NUD_NOARP });
    flushNeighbours(netlink, index);
    expect(ip(ns, "-4", "neigh", "show", "nud", "all", "dev", "e0")).toMatchObject([{ dst: "10.1.1.1" }]);
    expect(listNeighbours(netlink, { index: other, family: 4 })).toMatchObject([{ state: NUD_PERMANENT }]);
  });

  test("proxy entries", () => {
    const place = newLink();
    const { netlink, index } = place;
    setNeighbour(netlink, { index, destination: ipOf("10.1.0.9"), flags: NTF_PROXY });
    expect(ip(place.ns, "neigh", "show", "proxy")).toMatchObject([{ dst: "10.1.0.9" }]);
    deleteNeighbour(netlink, { index, destination: ipOf("10.1.0.9"), flags: NTF_PROXY });
    expect(ip(place.ns, "neigh", "show", "proxy")).toEqual([]);
  });
});

test("namespace ids: none, assigned, and that of a veth's other end", () => {
  const [host, box, third] = [newPlace(), newPlace(), newPlace()];
  expect(namespaceId(host.netlink, box.fd)).toBeUndefined();
  const link = createLink(host.netlink, {
    name: "h0",
    kind: "veth",
    veth: { peer: { name: "e0", netNsFd: box.fd } },
  });
  const id = namespaceId(host.netlink, box.fd);
  expect(id).toBeGreaterThanOrEqual(0);
  expect(getLink(host.netlink, link)!.linkNetnsId).toBe(id);
  assignNamespaceId(host.netlink, third.fd, 77);
  expect(namespaceId(host.netlink, third.fd)).toBe(77);
  expect(
    ip(host.ns, "netns", "list-id")
      .map((found) => found.nsid)
      .sort(),
  ).toEqual([id, 77].sort());
  expect(thrownBy(() => assignNamespaceId(host.netlink, third.fd))).toMatchObject({ code: "EEXIST" });
});
