import { dirname } from "node:path";
import { type Conf, goBin, ip, makeNode, type TestNamespace, type TestNode } from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
/** The folder of the Go plugins. */
let go: string;
let c: TestNamespace;
let peers = 0;
beforeEach((test) => {
  node = makeNode();
  go = dirname(goBin("sbr", test));
  c = newContainer();
});
afterEach(() => node.close());

/** A container with two interfaces, the second with addresses of both families. */
function newContainer(): TestNamespace {
  const made = node.container();
  for (const [name, n] of [
    ["eth0", 1],
    ["net1", 2],
  ] as const) {
    made.run(
      "ip",
      "link",
      "add",
      name,
      "type",
      "veth",
      "peer",
      "name",
      `far${n}${peers++}`,
      "netns",
      node.host.path,
    );
    made.run("sysctl", "-qw", `net.ipv6.conf.${name}.accept_dad=0`);
    made.run("ip", "link", "set", name, "up");
    made.run("ip", "addr", "add", `10.${n}.0.2/24`, "dev", name);
    made.run("ip", "addr", "add", `fd0${n}::2/64`, "dev", name, "nodad");
  }
  made.run("ip", "route", "add", "default", "via", "10.1.0.1");
  made.run("ip", "route", "add", "10.50.0.0/16", "via", "10.2.0.1", "metric", "7", "mtu", "1300");
  return made;
}

const confOf = (cniVersion: string, more: object = {}): Conf => ({
  cniVersion,
  name: "sbr-interop",
  type: "sbr",
  prevResult: atLeast(cniVersion, "0.3.0")
    ? {
        cniVersion,
        interfaces: [{ name: "net1", sandbox: c.path }],
        ips: [
          { version: "4", address: "10.2.0.2/24", gateway: "10.2.0.1", interface: 0 },
          { version: "6", address: "fd02::2/64", gateway: "fd02::1", interface: 0 },
        ],
      }
    : {
        cniVersion,
        ip4: { ip: "10.2.0.2/24", gateway: "10.2.0.1" },
        ip6: { ip: "fd02::2/64", gateway: "fd02::1" },
      },
  ...more,
});

const rules = (): object[] =>
  ["-4", "-6"].flatMap((family) =>
    ip(c, family, "rule").map(({ src, table, priority }) => ({ src, table, priority })),
  );

/** Of one family in every table but the local one, without link-local ones, which Go moves, too. */
const routes = (family: "-4" | "-6"): string[] =>
  ip(c, family, "route", "show", "table", "all")
    .filter((r) => r.table !== "local" && !String(r.dst).startsWith("fe80"))
    .map((r) =>
      ["table", "dst", "gateway", "dev", "prefsrc", "metric", "scope", "protocol"].map((k) => r[k]).join(" "),
    )
    .sort();

describe.each(specVersions)("sbr beside Go's, cniVersion %s", (cniVersion) => {
  describe.each([{}, { table: 77 }])("%j", (own) => {
    test.each([
      ["Go adds, we CHECK and DEL", true],
      ["we add, Go CHECKs and DELs", false],
    ])("%s, and no rule is left", async (_, goAdds) => {
      const before = rules();
      const conf = confOf(cniVersion, own);
      const call = { netns: c, ifName: "net1" };
      const [by, then] = [goAdds, !goAdds].map((isGo) => ({ ...call, ...(isGo ? { bin: go } : {}) }));
      await node.ok("ADD", conf, by);
      expect(rules()).toHaveLength(before.length + 2);
      if (atLeast(cniVersion, "0.4.0")) await node.ok("CHECK", conf, then);
      await node.ok("DEL", conf, then);
      expect(rules()).toEqual(before);
    });

    test("the same rules and routes", async () => {
      const conf = confOf(cniVersion, own);
      const call = { netns: c, ifName: "net1" };
      const theirResult = await node.ok("ADD", conf, { ...call, bin: go });
      const theirs = { rules: rules(), v4: routes("-4"), v6: routes("-6") };
      c = newContainer();
      const ourResult = await node.ok("ADD", conf, { ...call, netns: c });
      expect(rules()).toEqual(theirs.rules);
      // Go also copies IPv6 routes into tables of IPv4 addresses.
      const isMisplaced = (route: string) => route.startsWith("100 fd02::/64");
      expect(routes("-4")).toEqual(theirs.v4);
      expect(routes("-6")).toEqual(theirs.v6.filter((route) => !isMisplaced(route)));
      expect({ ...ourResult, interfaces: [] }).toEqual({ ...theirResult, interfaces: [] });
    });
  });
});
