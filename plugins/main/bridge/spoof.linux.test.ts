import { existsSync, readdirSync, rmSync } from "node:fs";
import { type Conf, ip, makeNode, pings, type TestNamespace, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";

/** Of a network of this file's own: all tests have one /run. */
const folder = "/run/tscni/macspoofchk/spoofnet";
let node: TestNode;
let c: TestNamespace;
beforeEach(() => {
  node = makeNode();
  c = node.container();
});
afterEach(() => {
  node.close();
  rmSync(folder, { recursive: true, force: true });
});

const guarded = (more: object = {}): Conf =>
  node.bridgeConf({ name: "spoofnet", macspoofchk: true, isGateway: true, ...more });
const left = (): unknown[] => {
  return [node.host.run("nft", "list", "ruleset"), existsSync(folder) ? readdirSync(folder) : []];
};
/** An interface that comes up may take a moment on a busy machine. */
const answered = (from: TestNamespace, address: string) =>
  expect.poll(() => pings(from, address), { timeout: 8000 }).toBe(true);

/** Gives a container's interface another address, and forgets whom it knows. */
function spoof(ns: TestNamespace, mac: string): void {
  ns.run("ip", "link", "set", "eth0", "down", "address", mac);
  ns.run("ip", "link", "set", "eth0", "up");
  ns.run("ip", "neigh", "flush", "all");
}

test("frames from another address are dropped, those of the container's own pass", async () => {
  const [other, free] = [node.container(), node.container()];
  await node.ok("ADD", guarded(), { netns: c });
  await node.ok("ADD", guarded(), { netns: other, id: "c2" });
  await node.ok("ADD", guarded({ macspoofchk: false }), { netns: free, id: "c3" });
  await answered(c, "10.88.0.1");
  await answered(c, "10.88.0.3");
  await answered(free, "10.88.0.2");
  const [{ address }] = ip(c, "link", "show", "dev", "eth0");
  const [{ address: others }] = ip(other, "link", "show", "dev", "eth0");
  spoof(c, "02:00:00:00:00:99");
  expect(pings(c, "10.88.0.1")).toBe(false);
  spoof(c, others); // of another guarded port
  expect(pings(c, "10.88.0.1")).toBe(false);
  spoof(c, address);
  await answered(c, "10.88.0.1");
  spoof(free, "02:00:00:00:00:98");
  await answered(free, "10.88.0.1");
});

test("CHECK sees what is lost, repair puts it back, DEL does without", async () => {
  const conf = guarded();
  const prevResult = await node.ok("ADD", conf, { netns: c });
  await node.ok("CHECK", { ...conf, prevResult }, { netns: c });
  const whole = node.host.run("nft", "list", "ruleset");
  const port = node.veths()[0]!;
  for (const loss of [
    "flush ruleset",
    "flush chain bridge tscni_macspoofchk prerouting",
    `delete element bridge tscni_macspoofchk guarded { "${port}" }`,
    "flush set bridge tscni_macspoofchk allowed",
  ]) {
    node.host.run("nft", loss);
    expect((await node.error("CHECK", { ...conf, prevResult }, { netns: c })).msg).toMatch(/^macspoofchk: /);
    await node.ok("CHECK", { ...conf, prevResult, "tscni/repair": true }, { netns: c });
    expect(node.host.run("nft", "list", "ruleset")).toBe(whole);
  }
  node.host.run("nft", "flush", "ruleset");
  await node.ok("DEL", { ...conf, prevResult }, { netns: c });
  expect(left()).toEqual(["", []]);
});

test.each([
  ["a whole config", {}],
  ["a config that says nothing of it", { macspoofchk: undefined }],
  ["a config that is wrong", { macspoofchk: "perhaps" }],
])("DEL without a namespace, with %s: nothing is left, and twice does no harm", async (_, more) => {
  await node.ok("ADD", guarded(), { netns: c });
  await node.ok("DEL", guarded(more));
  expect(left()).toEqual(["", []]);
  await node.ok("DEL", guarded(more));
});

test("DEL of one leaves the others', whose records may be gone", async () => {
  const other = node.container();
  await node.ok("ADD", guarded(), { netns: c });
  const prevResult = await node.ok("ADD", guarded(), { netns: other, id: "c2" });
  rmSync(folder, { recursive: true });
  await node.ok("DEL", guarded(), { netns: c });
  await node.ok("CHECK", guarded({ prevResult }), { netns: other, id: "c2" });
  await node.ok("DEL", guarded(), { netns: other, id: "c2" });
  expect(left()).toEqual(["", []]);
});

test("GC removes those that are not in the list, and no other network's", async () => {
  for (const id of ["a", "b"]) await node.ok("ADD", guarded(), { netns: node.container(), id });
  const others = guarded({ name: "spoofothers" });
  const place = { netns: node.container(), id: "a" };
  const prevResult = await node.ok("ADD", others, place);
  const gc = (list: string[]) =>
    node.call(
      "GC",
      guarded({ "cni.dev/valid-attachments": list.map((containerID) => ({ containerID, ifname: "eth0" })) }),
    );
  expect((await gc(["b"])).stderr).toMatch(/gc: removed macspoofchk of veth/);
  expect(node.veths()).toHaveLength(2);
  await gc([]);
  await node.ok("CHECK", { ...others, prevResult }, place);
  await node.ok("DEL", others, place);
  expect(left()[0]).toBe("");
});

test("many at once, coming and going", async () => {
  const places = Array.from({ length: 10 }, (_, i) => ({ id: `c${i}`, netns: node.container() }));
  await Promise.all(places.map((place) => node.ok("ADD", guarded(), place)));
  await Promise.all(places.map((place) => node.ok("DEL", guarded(), place)));
  expect(left()).toEqual(["", []]);
});

test("STATUS is content with what works here", async () => {
  await node.ok("STATUS", guarded());
});
