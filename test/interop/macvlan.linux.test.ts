import { dirname } from "node:path";
import { type Conf, goBin, ip, makeNode, type TestNamespace, type TestNode } from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { interfaceState, withoutRandom } from "./state.ts";

let node: TestNode;
/** The folder of the Go plugins. */
let go: string;
let c: TestNamespace;
beforeEach((test) => {
  node = makeNode();
  go = dirname(goBin("macvlan", test));
  c = node.container();
  node.host.run("ip", "link", "add", "master0", "up", "type", "veth", "peer", "name", "below");
  node.host.run("ip", "link", "set", "below", "up");
});
afterEach(() => node.close());

const configs: [name: string, own: object, subnets: string[]][] = [
  ["dual stack", {}, ["10.88.0.0/24", "fd88::/64"]],
  [
    "every option",
    { mode: "private", mtu: 1400, mac: "02:00:00:00:00:01", bcqueuelen: 99 },
    ["10.88.0.0/24"],
  ],
  ["layer 2", { mode: "vepa" }, []],
];
const cases = configs.flatMap(([name, own, subnets]) =>
  specVersions
    // Without an address there is no result in the oldest shape.
    .filter((cniVersion) => subnets.length > 0 || atLeast(cniVersion, "0.3.0"))
    .map((cniVersion) => [name, cniVersion, own, subnets] as const),
);

describe.each(cases)("macvlan with the Go plugins: %s, cniVersion %s", (_, cniVersion, own, subnets) => {
  const confOf = (prevResult?: object): Conf => ({
    ...node.bridgeConf({ cniVersion, type: "macvlan", master: "master0", ...own, prevResult }, subnets),
  });

  test.each([
    ["Go adds, we CHECK and DEL", true],
    ["we add, Go CHECKs and DELs", false],
  ])("%s", async (_, goAdds) => {
    const [by, then] = [goAdds, !goAdds].map((isGo) => ({ netns: c, ...(isGo ? { bin: go } : {}) }));
    const conf = confOf(await node.ok("ADD", confOf(), by));
    if (atLeast(cniVersion, "0.4.0")) await node.ok("CHECK", conf, then);
    await node.ok("DEL", conf, then);
    expect([node.leases(), ip(c, "link").map((link) => link.ifname)]).toEqual([[], ["lo"]]);
  });

  test("the same input gives the same result and interface", async () => {
    const state = () => (subnets.length > 0 ? interfaceState(c) : {});
    const theirs = await node.ok("ADD", confOf(), { netns: c, bin: go });
    const theirState = state();
    await node.ok("DEL", confOf(), { netns: c, bin: go });
    if (subnets.length > 0) node.resetLeases();
    const ours = await node.ok("ADD", confOf(), { netns: c });
    expect(withoutRandom(ours)).toEqual(withoutRandom(theirs));
    expect(state()).toEqual(theirState);
  });
});
