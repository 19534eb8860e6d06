import { ip, makeNode, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";

let node: TestNode;
beforeEach(() => {
  node = makeNode();
});
afterEach(() => node.close());

const conf = (more: object = {}) => ({ cniVersion: "1.1.0", name: "testnet", type: "widget", ...more });
const ipam = () => ({
  type: "host-local",
  dataDir: node.dataDir,
  ranges: [[{ subnet: "10.97.0.0/24" }], [{ subnet: "fd97::/64" }]],
});

test("ADD, CHECK and DEL with addresses; nothing stays", async () => {
  const netns = node.container();
  const withIpam = conf({ mtu: 1400, ipam: ipam() });
  const added = await node.ok("ADD", withIpam, { netns });
  expect(added.ips).toEqual([
    { interface: 1, address: "10.97.0.2/24", gateway: "10.97.0.1" },
    { interface: 1, address: "fd97::2/64", gateway: "fd97::1" },
  ]);
  expect(added.interfaces).toMatchObject([{ name: node.veths()[0] }, { name: "eth0", sandbox: netns.path }]);
  const [eth0] = ip(netns, "addr", "show", "dev", "eth0", "scope", "global");
  expect(eth0).toMatchObject({ mtu: 1400, operstate: "UP", address: added.interfaces[1].mac });
  const addresses = eth0.addr_info.map((a: { local?: string }) => a.local).filter(Boolean);
  expect(addresses).toEqual(["10.97.0.2", "fd97::2"]);

  const later = { ...withIpam, prevResult: added };
  await node.ok("CHECK", later, { netns });
  netns.run("ip", "addr", "del", "10.97.0.2/24", "dev", "eth0");
  const { msg } = await node.error("CHECK", later, { netns });
  expect(msg).toBe("interface eth0 lacks the address 10.97.0.2/24");

  await node.ok("DEL", later, { netns });
  await node.ok("DEL", later, { netns });
  expect([node.veths(), node.leases()]).toEqual([[], []]);
  expect(ip(netns, "link").map((link) => link.ifname)).toEqual(["lo"]);
});

test("an ADD that fails is taken back", async () => {
  const before = node.state();
  const { msg } = await node.error("ADD", conf({ ipam: { type: "none" } }), { netns: node.container() });
  expect(msg).toContain('"none"');
  expect(node.state()).toEqual(before);
});

test("GC removes what is not valid any more", async () => {
  await node.ok("ADD", conf({ ipam: ipam() }), { netns: node.container() });
  const gc = (valid: object[]) => node.ok("GC", conf({ ipam: ipam(), "cni.dev/valid-attachments": valid }));
  await gc([{ containerID: "c1", ifname: "eth0" }]);
  expect([node.veths(), node.leases()]).toMatchObject([{ length: 1 }, { length: 2 }]);
  await gc([]);
  expect([node.veths(), node.leases()]).toEqual([[], []]);
});

test("STATUS", async () => {
  await node.ok("STATUS", conf({ ipam: ipam() }));
});
