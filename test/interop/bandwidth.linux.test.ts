import { dirname } from "node:path";
import { type Conf, goBin, ip, makeNode, type TestNamespace, type TestNode } from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
/** The folder of the Go plugins. */
let go: string;
let c: TestNamespace;
beforeEach((test) => {
  node = makeNode();
  go = dirname(goBin("bandwidth", test));
  c = node.container();
});
afterEach(() => node.close());

// Figures that are no round numbers of anything.
const limits: [string, object][] = [
  [
    "both ways",
    { ingressRate: 12_345_678, ingressBurst: 765_432, egressRate: 987_654, egressBurst: 123_456 },
  ],
  ["ingress", { ingressRate: 100_000_000_000, ingressBurst: 80_000_000 }],
  ["egress", { runtimeConfig: { bandwidth: { egressRate: 1_000_001, egressBurst: 2_000_003 } } }],
];
const cases = limits.flatMap(([name, own]) =>
  specVersions
    .filter((version) => atLeast(version, "0.3.0"))
    .map((cniVersion) => [name, cniVersion, own] as const),
);

/** Everything that tc says of the host, without what differs from run to run. */
const queues = (): object =>
  JSON.parse(node.host.run("tc", "-j", "qdisc")).map((q: Record<string, unknown>) => ({
    ...q,
    handle: q.kind === "noqueue" ? undefined : q.handle,
    dev: String(q.dev).slice(0, 4),
  }));

const filters = (port: string): string =>
  node.host
    .run("tc", "filter", "show", "dev", port, "ingress")
    .replaceAll(/index \d+|dev(ice)? \S+|bwp\S+/g, "");

const ifbs = () =>
  ip(node.host, "link", "show", "type", "ifb").map(({ ifname, mtu, txqlen }) => [ifname, mtu, txqlen]);

describe.each(cases)("bandwidth beside Go's, %s, cniVersion %s", (_, cniVersion, own) => {
  let conf: Conf;
  let port: string;
  beforeEach(async () => {
    const prevResult = await node.ok("ADD", node.bridgeConf({ cniVersion }), { netns: c });
    conf = { cniVersion, name: "testnet", type: "bandwidth", prevResult, ...own };
    port = prevResult.interfaces[1].name;
  });

  test.each([
    ["Go adds, we CHECK and DEL", true],
    ["we add, Go CHECKs and DELs", false],
  ])("%s, and nothing is left", async (_, goAdds) => {
    const before = node.state();
    const [by, then] = [goAdds, !goAdds].map((isGo) => ({ netns: c, ...(isGo ? { bin: go } : {}) }));
    const prevResult = await node.ok("ADD", conf, by);
    const later = { ...conf, prevResult };
    if (atLeast(cniVersion, "0.4.0")) await node.ok("CHECK", later, then);
    await node.ok("DEL", later, then);
    expect(node.state()).toEqual(before);
  });

  test("the same queues and ifb; our filter has one action where theirs has two", async () => {
    const theirResult = await node.ok("ADD", conf, { netns: c, bin: go });
    const theirs = { queues: queues(), ifbs: ifbs() };
    const theirFilters = filters(port);
    await node.ok("DEL", conf, { netns: c, bin: go });
    node.host.run("sh", "-c", `tc qdisc del dev ${port} root; tc qdisc del dev ${port} ingress; true`);
    const ourResult = await node.ok("ADD", conf, { netns: c });
    expect({ queues: queues(), ifbs: ifbs() }).toEqual(theirs);
    expect(named(ourResult)).toEqual(named(theirResult));

    const actions = (text: string) => text.split("action order").length - 1;
    expect(filters(port).split("action order")[0]).toBe(theirFilters.split("action order")[0]);
    expect(actions(filters(port)) * 2).toBe(actions(theirFilters));
  });

  test("our ADD replaces what an ADD of Go's left", async () => {
    const before = node.state();
    await node.ok("ADD", conf, { netns: c, bin: go });
    const prevResult = await node.ok("ADD", conf, { netns: c });
    if (atLeast(cniVersion, "0.4.0")) await node.ok("CHECK", { ...conf, prevResult }, { netns: c });
    await node.ok("DEL", conf, { netns: c });
    expect(node.state()).toEqual(before);
  });
});

const named = (result: { interfaces: { name: string }[] }): string[] =>
  result.interfaces.map(({ name }) => name);
