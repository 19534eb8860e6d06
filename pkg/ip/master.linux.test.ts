import { createLink, type Link, type LinkKind, type Netlink, openRoute, setLink } from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import { makeNamespace, type TestNamespace } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { defaultMaster, findMaster, requireKind, verifyMaster, verifyMtu } from "./index.ts";

let ns: TestNamespace;
let netlink: Netlink;
let eth0: Link;
beforeEach(() => {
  ns = makeNamespace();
  using sandbox = openNamespace(ns.path);
  netlink = sandbox.enter(openRoute);
  eth0 = createLink(netlink, { kind: "veth", name: "eth0", mtu: 1400, veth: { peer: { name: "p0" } } });
  for (const name of ["eth0", "p0"]) setLink(netlink, { name }, { up: true });
});
afterEach(() => {
  netlink.close();
  ns.close();
});

const routes = (...lines: string[]) => {
  for (const line of lines) ns.run("ip", ...line.split(" "));
};

describe("the master", () => {
  test("is found by name; its absence has the code that is asked for", () => {
    expect(findMaster(netlink, "eth0").index).toBe(eth0.index);
    const msg = 'failed to lookup master "nope": Link not found';
    for (const code of [7, 50])
      expect(() => findMaster(netlink, "nope", code)).toThrow(expect.objectContaining({ code, msg }));
  });

  test("by default is where the default route goes", () => {
    expect(() => defaultMaster(netlink)).toThrow(
      expect.objectContaining({ code: 7, msg: "no default route interface found" }),
    );
    routes("-6 route add default dev p0");
    expect(defaultMaster(netlink)).toBe("p0");
    routes("addr add 10.1.0.2/24 dev eth0", "route add default via 10.1.0.1");
    expect(defaultMaster(netlink), "IPv4 first").toBe("eth0");
  });

  test("a default route that refuses packets leads nowhere", () => {
    routes("route add unreachable default");
    expect(() => defaultMaster(netlink)).toThrow("no default route interface found");
  });

  test("bears links up to its MTU", () => {
    for (const mtu of [0, 1400]) verifyMtu(mtu, eth0);
    expect(() => verifyMtu(1401, eth0)).toThrow("invalid MTU 1401, must be [0, master MTU(1400)]");
  });

  test("is what a link says it is on", () => {
    const upper = createLink(netlink, {
      kind: "macvlan",
      name: "m0",
      link: eth0.index,
      macvlan: { mode: 4 },
    });
    verifyMaster(upper, eth0);
    const other = findMaster(netlink, "p0");
    expect(() => verifyMaster(upper, other)).toThrow("interface m0 is not on top of p0");
    expect(() => verifyMaster(upper, undefined)).toThrow("interface m0 is not on top of anything");
  });
});

test("a kind of link that the kernel lacks is code 50; asking leaves nothing", () => {
  const before = ns.run("ip", "link");
  for (const kind of ["veth", "bridge", "macvlan", "vxlan"] as const) requireKind(netlink, kind);
  expect(() => requireKind(netlink, "nosuch" as LinkKind)).toThrow(
    expect.objectContaining({ code: 50, msg: "this kernel has no links of kind nosuch" }),
  );
  expect(ns.run("ip", "link")).toBe(before);
});
