import { ip, makeNode, needs, type TestNamespace, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
beforeEach((t) => {
  needs(t, "bridge VLAN filtering");
  node = makeNode();
});
afterEach(() => node?.close());

const pings = (from: TestNamespace, address: string): boolean => {
  try {
    return from.run("ping", "-c1", "-W1", address).includes(" 1 received");
  } catch {
    return false;
  }
};

/** A port's VLANs, each with its flags. */
function vlansOf(port: string): string[] {
  const [found] = JSON.parse(node.host.run("bridge", "-j", "vlan", "show", "dev", port));
  return found.vlans.map((v: { vlan: number; vlanEnd?: number; flags?: string[] }) =>
    [v.vlan, v.vlanEnd ? `-${v.vlanEnd}` : "", ...(v.flags ?? [])].join(" ").replace(" -", "-").trim(),
  );
}

const untagged = (vlan: number) => expect.stringMatching(new RegExp(`^${vlan} +PVID Egress Untagged$`));

describe("vlan", () => {
  test("containers of one VLAN reach each other and its gateway, and nobody else", async () => {
    const [a, b, other] = [node.container(), node.container(), node.container()];
    const conf = node.bridgeConf({ vlan: 100, isGateway: true });
    const added = await node.ok("ADD", conf, { netns: a, id: "a" });
    expect(added.interfaces.map((i: { name: string }) => i.name)).toEqual([
      "brtest",
      expect.any(String),
      "eth0",
      "brtest.100",
    ]);
    await node.ok("CHECK", { ...conf, prevResult: added }, { netns: a, id: "a" });
    await node.ok("ADD", conf, { netns: b, id: "b" });
    await node.ok("ADD", node.bridgeConf({ vlan: 200 }), { netns: other, id: "other" });
    expect(vlansOf(added.interfaces[1].name)).toEqual([untagged(100)]);
    for (const address of ["10.88.0.3", "fd88::3", "10.88.0.1", "fd88::1"])
      expect(pings(a, address), address).toBe(true);
    expect(pings(a, "10.88.0.4"), "another VLAN").toBe(false);
  });

  test("a gateway that a killed ADD left half done is finished by the next", async () => {
    const conf = node.bridgeConf({ vlan: 100, isGateway: true });
    const c = node.container();
    await node.ok("ADD", conf, { netns: c });
    await node.ok("DEL", conf, { netns: c });
    const port = node.veths().find((name) => name !== "brtest.100")!;
    node.host.run("bridge", "vlan", "del", "dev", port, "vid", "100");
    node.host.run("ip", "link", "set", "brtest.100", "down");
    await node.ok("ADD", conf, { netns: c });
    expect(pings(c, "10.88.0.1")).toBe(true);
  });

  test("a gateway's name that does not fit is refused by name", async () => {
    const conf = node.bridgeConf({ bridge: "br-long-name0", vlan: 4000, isGateway: true });
    const error = await node.error("ADD", conf, { netns: node.container() });
    expect(error.msg).toBe('the VLAN\'s gateway "br-long-name0.4000": interface name is too long');
    expect([node.veths(), node.leases()]).toEqual([[], []]);
  });
});

test("vlanTrunk: its VLANs tagged, VLAN 1 untagged", async () => {
  const [trunk, c] = [node.container(), node.container()];
  const vlanTrunk = [{ minID: 100, maxID: 101 }, { id: 300 }];
  const added = await node.ok("ADD", node.bridgeConf({ vlanTrunk }, []), { netns: trunk, id: "trunk" });
  expect(vlansOf(added.interfaces[1].name)).toEqual([untagged(1), "100", "101", "300"]);
  await node.ok("ADD", node.bridgeConf({ vlan: 100 }), { netns: c });
  for (const [vlan, reached] of [
    [100, true],
    [200, false],
  ] as const) {
    const name = `v${vlan}`;
    trunk.run("ip", "link", "add", "link", "eth0", "name", name, "up", "type", "vlan", "id", String(vlan));
    trunk.run("ip", "addr", "add", "10.88.0.77/24", "dev", name);
    expect(pings(trunk, "10.88.0.2"), `tagged ${vlan}`).toBe(reached);
    trunk.run("ip", "link", "del", name);
  }
});

test("preserveDefaultVlan, and a trunk that contains vlan", async () => {
  const own = { vlan: 100, vlanTrunk: [{ minID: 99, maxID: 100 }], preserveDefaultVlan: true };
  const added = await node.ok("ADD", node.bridgeConf(own, []), { netns: node.container() });
  expect(vlansOf(added.interfaces[1].name)).toEqual([
    expect.stringMatching(/^1 +Egress Untagged$/),
    "99",
    untagged(100),
  ]);
  expect(ip(node.host, "link", "show", "dev", "brtest")[0].linkinfo.info_data.vlan_filtering).toBe(1);
});
