import { ip, makeNode, type TestNamespace, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
let c: TestNamespace;
beforeEach(() => {
  node = makeNode();
  c = node.container();
});
afterEach(() => node.close());

const hostInterfaceOf = (added: { interfaces: { name: string }[] }): string => added.interfaces[1]!.name;

describe("DEL leaves nothing", () => {
  const gone = async () => expect([node.veths(), node.leases()]).toEqual([[], []]);

  test.each([
    ["no netns in the call", undefined],
    ["an empty netns", ""],
    ["a netns whose path is gone", "/run/nowhere/c1"],
    ["a netns whose path is a plain file", "/etc/hostname"],
    ["a netns whose path is a folder", "/etc"],
  ])("%s", async (_, netns) => {
    const conf = node.bridgeConf({ isDefaultGateway: true });
    await node.ok("ADD", conf, { netns: c });
    await node.ok("DEL", conf, { netns });
    await gone();
    await node.ok("DEL", conf, { netns });
  });

  test("the namespace is gone before DEL", async () => {
    const conf = node.bridgeConf();
    await node.ok("ADD", conf, { netns: c });
    c.close();
    await node.ok("DEL", conf, { netns: c });
    await gone();
  });

  test("again, and of what never was", async () => {
    const conf = node.bridgeConf();
    await node.ok("DEL", conf, { netns: c });
    await node.ok("ADD", conf, { netns: c });
    for (let i = 0; i < 3; i++) await node.ok("DEL", conf, { netns: c });
    await gone();
  });

  test("wrong values in keys that DEL has no use for are warnings", async () => {
    const conf = node.bridgeConf();
    await node.ok("ADD", conf, { netns: c });
    const wrong = { ...conf, mtu: "big", vlan: 9999, hairpinMode: true, promiscMode: true, prevResult: 7 };
    const outcome = await node.call("DEL", wrong, { netns: c, args: "nonsense" });
    expect(outcome.stdout).toBe("");
    expect(outcome.status).toBe(0);
    for (const key of ["mtu", "vlan", "prevResult"]) expect(outcome.stderr).toContain(`ignoring ${key}: `);
    await gone();
  });

  test("only of this interface of this container", async () => {
    const conf = node.bridgeConf();
    await node.ok("ADD", conf, { netns: c });
    await node.ok("ADD", conf, { netns: c, ifName: "net1" });
    await node.ok("ADD", conf, { netns: node.container(), id: "c2" });
    await node.ok("DEL", conf, { netns: c });
    expect(node.veths()).toHaveLength(2);
    expect(node.leases()).toEqual(["10.88.0.3", "10.88.0.4", "fd88::3", "fd88::4"]);
    expect(ip(c, "link").map((link) => link.ifname)).toEqual(["lo", "net1"]);
  });
});

describe("GC", () => {
  const gc = (conf: object, valid: unknown) =>
    node.ok("GC", { ...conf, type: "bridge", "cni.dev/valid-attachments": valid });

  test("removes what is not valid, link and lease, and nothing else", async () => {
    const conf = node.bridgeConf();
    const other = node.bridgeConf({ name: "other" }, ["10.99.0.0/24"]);
    const kept = await node.ok("ADD", conf, { netns: c });
    await node.ok("ADD", conf, { netns: node.container(), id: "stale" });
    const foreign = await node.ok("ADD", other, { netns: node.container(), id: "stale" });
    node.host.run(
      "ip",
      "link",
      "add",
      "veth0a1b2c3d",
      "master",
      "brtest",
      "type",
      "veth",
      "peer",
      "name",
      "p1",
    );

    await gc(conf, [{ containerID: "c1", ifname: "eth0" }]);
    const expected = [hostInterfaceOf(kept), hostInterfaceOf(foreign), "veth0a1b2c3d", "p1"];
    expect(node.veths().toSorted()).toEqual(expected.toSorted());
    expect(node.leases()).toEqual(["10.88.0.2", "fd88::2"]);
    expect(node.leases("other")).toHaveLength(1);
  });

  test("without a list nothing is known and nothing done; [] and null mean that none is valid", async () => {
    const conf = node.bridgeConf();
    for (const none of [[], null]) {
      await node.ok("ADD", conf, { netns: c });
      const before = node.state();
      await node.ok("GC", conf);
      expect(node.state()).toEqual(before);
      await gc(conf, none);
      expect([node.veths(), node.leases()]).toEqual([[], []]);
    }
  });

  test("removes the unlabelled link of an ADD that was killed, on this bridge only", async () => {
    const conf = node.bridgeConf();
    await node.ok("ADD", conf, { netns: c });
    node.host.run("ip", "link", "add", "brother", "type", "bridge");
    for (const [name, bridge] of [
      ["veth0000000000a", "brtest"],
      ["veth0000000000b", "brother"],
    ] as const)
      node.host.run(
        "ip",
        "link",
        "add",
        name,
        "master",
        bridge,
        "type",
        "veth",
        "peer",
        "name",
        `p${bridge}`,
      );
    await gc(conf, [{ containerID: "c1", ifname: "eth0" }]);
    expect(node.veths()).not.toContain("veth0000000000a");
    expect(node.veths()).toContain("veth0000000000b");
    expect(node.veths()).toHaveLength(3);
  });
});

describe("STATUS", () => {
  test("is fine before the first ADD, and asks IPAM", async () => {
    expect(await node.call("STATUS", node.bridgeConf())).toMatchObject({ status: 0, stdout: "" });
    const conf = node.bridgeConf();
    const unusable = { ...conf, ipam: { ...conf.ipam, dataDir: "/proc/nowhere" } };
    expect(await node.error("STATUS", unusable)).toMatchObject({ code: 50 });
  });

  test("tells when the bridge's name belongs to another kind of link", async () => {
    node.host.run("ip", "link", "add", "brtest", "type", "ifb");
    expect(await node.error("STATUS", node.bridgeConf())).toMatchObject({
      code: 50,
      msg: '"brtest" already exists but is not a bridge',
    });
  });
});
