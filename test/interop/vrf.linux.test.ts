import { dirname } from "node:path";
import {
  addAddress,
  goBin,
  ip,
  makeNode,
  namesIn,
  needs,
  type TestNamespace,
  type TestNode,
} from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
/** The folder of the Go plugins. */
let go: string;
let c: TestNamespace;
beforeEach((test) => {
  needs(test, "vrf");
  node = makeNode();
  go = dirname(goBin("vrf", test));
  c = node.container();
  const other = node.container();
  c.run("ip", "link", "add", "eth0", "type", "veth", "peer", "uplink", "netns", other.path);
  other.run("ip", "link", "set", "uplink", "up");
  for (const address of ["10.88.0.2/24", "fd88::2/64"]) addAddress(c, "eth0", address);
  c.run("ip", "link", "set", "eth0", "up");
  c.run("ip", "route", "add", "10.77.0.0/16", "via", "10.88.0.1");
  c.run("ip", "-6", "route", "add", "default", "via", "fd88::1");
});
afterEach(() => node?.close());

/** What is in the VRF, and nowhere else. */
const state = (table: number) => ({
  vrf: ip(c, "link", "show", "type", "vrf").map(({ ifname, linkinfo }) => [ifname, linkinfo.info_data]),
  slaves: ip(c, "link", "show", "master", "blue").map(({ ifname }) => ifname),
  addresses: ip(c, "addr", "show", "scope", "global").flatMap(({ addr_info }) =>
    addr_info
      .filter((entry: { local?: string }) => entry.local)
      .map(({ local, prefixlen }: { local: string; prefixlen: number }) => `${local}/${prefixlen}`),
  ),
  routes: ["-4", "-6"].flatMap((family) =>
    ["main", String(table)].map((name) =>
      ip(c, family, "route", "show", "table", name)
        .filter(({ dst, type }) => type === "unicast" && !dst.startsWith("fe80"))
        .map(({ dst, gateway, dev, metric, scope }) => `${dst} ${gateway} ${dev} ${metric} ${scope}`)
        .toSorted(),
    ),
  ),
});

const versions = ["0.3.1", "0.4.0", "1.1.0"];
const cases = [{}, { table: 42 }].flatMap((own) => versions.map((cniVersion) => ({ cniVersion, ...own })));

describe.each(cases)("vrf beside Go's, %o", (own) => {
  const confOf = () => {
    const prevResult = { cniVersion: own.cniVersion, interfaces: [{ name: "eth0", sandbox: c.path }] };
    return node.conf("vrf", { vrfname: "blue", prevResult, ...own }, []);
  };

  test.each([
    ["Go adds, we CHECK and DEL", true],
    ["we add, Go CHECKs and DELs", false],
  ])("%s, and nothing is left", async (_, goAdds) => {
    const [by, then] = [goAdds, !goAdds].map((isGo) => ({ netns: c, ...(isGo ? { bin: go } : {}) }));
    await node.ok("ADD", confOf(), by);
    if (own.cniVersion !== "0.3.1") await node.ok("CHECK", confOf(), then);
    await node.ok("DEL", confOf(), then);
    expect(namesIn(c)).toEqual(["eth0", "lo"]);
    expect(ip(c, "link", "show", "dev", "eth0")[0].master).toBeUndefined();
  });
});

test("the same input gives the same result, VRF, addresses and routes", async () => {
  const prevResult = {
    cniVersion: "1.1.0",
    interfaces: [{ name: "eth0", sandbox: c.path }],
    ips: [{ address: "10.88.0.2/24", interface: 0 }],
  };
  const conf = node.conf("vrf", { vrfname: "blue", prevResult }, []);
  const theirs = await node.ok("ADD", conf, { netns: c, bin: go });
  const theirState = state(1);
  // Ours takes the routes back into the main table, which Go's forgets.
  await node.ok("DEL", conf, { netns: c });
  expect(await node.ok("ADD", conf, { netns: c })).toEqual(theirs);
  expect(state(1)).toEqual(theirState);
});
