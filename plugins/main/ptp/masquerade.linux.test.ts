import { existsSync } from "node:fs";
import { type Conf, makeLan, makeNode, pings, type TestNamespace, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
let c: TestNamespace;
beforeEach(() => {
  node = makeNode();
  c = node.container();
});
afterEach(() => node.close());

/** A network of this file's own: all tests have one /run. */
const network = "ptpmasq";
const conf = (ipMasqBackend: string, more: object = {}): Conf => {
  const made = node.conf("ptp", { name: network, ipMasq: true, ipMasqBackend, ...more });
  return { ...made, ipam: { ...made.ipam, routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }] } };
};
/** Whether the firewall knows of the container, and whether there is a record of it. */
const traces = () => [
  /10\.88\.0\.|fd88::/.test(node.host.run("nft", "list", "ruleset")),
  existsSync(`/run/tscni/masquerade/${network}`),
];
/** A lan that knows no way back to the containers. */
function outside(): TestNamespace {
  const lan = makeLan(node, "192.0.2.9/24", "2001:db8::9/64");
  node.host.run("ip", "addr", "add", "192.0.2.1/24", "dev", "eth0");
  node.host.run("ip", "addr", "add", "2001:db8::1/64", "dev", "eth0", "nodad");
  return lan;
}

describe.each(["iptables", "nftables"])("ipMasq by %s", (backend) => {
  test("the outside sees the host's address; without it there is no way back", async () => {
    outside();
    const prevResult = await node.ok("ADD", conf(backend), { netns: c });
    expect([pings(c, "192.0.2.9"), pings(c, "2001:db8::9")]).toEqual([true, true]);
    await node.ok("CHECK", conf(backend, { prevResult }), { netns: c });
    const other = node.container();
    await node.ok("ADD", conf(backend, { ipMasq: false }), { netns: other, id: "c2" });
    expect(pings(other, "192.0.2.9")).toBe(false);
    await node.ok("DEL", conf(backend), { netns: other, id: "c2" });
    await node.ok("DEL", conf(backend, { prevResult }), { netns: c });
    expect(traces()).toEqual([false, false]);
  });

  test("DEL removes rules without namespace, previous result or ipMasq in the config", async () => {
    await node.ok("ADD", conf(backend), { netns: c });
    expect(traces()).toEqual([true, true]);
    c.close();
    await node.ok("DEL", conf(backend, { ipMasq: false, ipMasqBackend: "" }), { netns: "" });
    expect([traces(), node.leases(network), node.veths()]).toEqual([[false, false], [], []]);
  });

  test("CHECK tells that rules are gone", async () => {
    const prevResult = await node.ok("ADD", conf(backend), { netns: c });
    node.host.run("nft", "flush", "ruleset");
    await node.error("CHECK", conf(backend, { prevResult }), { netns: c });
    await node.ok("DEL", conf(backend, { prevResult }), { netns: c });
  });

  test("an ADD that fails takes rules back", async () => {
    const bad = conf(backend);
    bad.ipam.routes.push({ dst: "10.77.0.0/16", gw: "172.31.0.1" });
    const error = await node.error("ADD", bad, { netns: c });
    expect(error.details ?? "").not.toContain("could not be taken back");
    expect([traces(), node.leases(network), node.veths()]).toEqual([[false, false], [], []]);
  });

  test("GC removes rules of containers that are gone", async () => {
    await node.ok("ADD", conf(backend), { netns: c });
    await node.ok("GC", conf(backend, { "cni.dev/valid-attachments": [] }));
    expect([traces(), node.leases(network), node.veths()]).toEqual([[false, false], [], []]);
  });

  test("STATUS", async () => {
    await node.ok("STATUS", conf(backend));
  });
});
