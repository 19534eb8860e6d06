import { ip, makeNode, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";

let node: TestNode;
beforeEach(() => {
  node = makeNode();
});
afterEach(() => node.close());

const ofMany = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

test("64 ADDs at once, then 64 DELs: distinct addresses, no error, nothing left", async () => {
  const conf = node.bridgeConf({ isDefaultGateway: true });
  const containers = ofMany(64, () => node.container());
  const added = await Promise.all(containers.map((netns, i) => node.ok("ADD", conf, { netns, id: `c${i}` })));
  const addresses = added.flatMap((result) => result.ips.map((entry: { address: string }) => entry.address));
  expect(new Set(addresses).size).toBe(128);
  expect(node.veths()).toHaveLength(64);
  expect(node.leases().length).toBe(128);
  for (const netns of [containers[0]!, containers[63]!]) netns.run("ping", "-c1", "-W1", "fd88::1");
  await Promise.all(containers.map((netns, i) => node.ok("DEL", conf, { netns, id: `c${i}` })));
  expect([node.veths(), node.leases()]).toEqual([[], []]);
});

test("200 ADDs that all find no bridge make one, and no error", async () => {
  const conf = node.bridgeConf({ isGateway: true });
  const containers = ofMany(200, () => node.container());
  const added = await Promise.all(containers.map((netns, i) => node.ok("ADD", conf, { netns, id: `c${i}` })));
  const bridges = ip(node.host, "link", "show", "type", "bridge");
  expect(bridges.map((link) => link.ifname)).toEqual(["brtest"]);
  expect(new Set(added.map((result) => result.interfaces[0].mac))).toEqual(new Set([bridges[0].address]));
  expect(ip(node.host, "link", "show", "master", "brtest")).toHaveLength(200);
  const { addr_info } = ip(node.host, "addr", "show", "dev", "brtest", "scope", "global")[0];
  const addresses = addr_info.map((entry: { local?: string }) => entry.local).filter(Boolean);
  expect(addresses).toEqual(["10.88.0.1", "fd88::1"]);
});

test("DELs of one attachment at once: no error", async () => {
  const conf = node.bridgeConf();
  const c = node.container();
  for (let round = 0; round < 5; round++) {
    await node.ok("ADD", conf, { netns: c });
    await Promise.all(ofMany(8, () => node.ok("DEL", conf, { netns: c })));
    expect([node.veths(), node.leases()]).toEqual([[], []]);
  }
});

test("networks that take the bridge's address from each other with forceAddress: no error", async () => {
  const confs = ofMany(2, (i) =>
    node.bridgeConf({ name: `net${i}`, isGateway: true, forceAddress: true }, [`10.${90 + i}.0.0/24`]),
  );
  await Promise.all(
    ofMany(32, (i) => node.ok("ADD", confs[i % 2]!, { netns: node.container(), id: `c${i}` })),
  );
});
