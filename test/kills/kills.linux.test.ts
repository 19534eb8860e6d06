import { ip, makeNode, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";
import { callAndKill } from "./support.ts";

let node: TestNode;
beforeEach(() => {
  node = makeNode();
});
afterEach(() => node.close());

const rounds = 120;
/** Spread evenly over the life of a process, nsenter's start included, with a seed of the test's own. */
const momentOf = (round: number, lastMs: number): number => ((round * 0.618034) % 1) * lastMs;

/** Everything but the contents of host-local's bookkeeping, which move on. */
const traces = () => {
  const { files, ...kernel } = node.state();
  return { kernel, files: Object.keys(files) };
};

test("ADD killed at any moment, then DEL: nothing stays", async () => {
  const conf = node.bridgeConf({ isDefaultGateway: true });
  const c = node.container();
  await node.ok("ADD", conf, { netns: c });
  await node.ok("DEL", conf, { netns: c });
  const before = traces();
  const ends = { killed: 0, ended: 0 };
  let halfDone = 0;
  for (let round = 0; round < rounds; round++) {
    ends[await callAndKill(node, "ADD", conf, { netns: c }, momentOf(round, 12))]++;
    const [links, leases] = [node.veths().length, node.leases().length];
    if ((links === 1) !== (leases === 2) || leases === 1) halfDone++;
    await node.ok("DEL", conf, { netns: round % 2 === 0 ? c : undefined });
    expect(traces(), `round ${round}`).toEqual(before);
    expect(ip(c, "link").map((link) => link.ifname)).toEqual(["lo"]);
  }
  expect(ends.killed, "rounds that killed").toBeGreaterThan(rounds / 4);
  expect(halfDone, "rounds that left a link without its leases").toBeGreaterThan(0);
});

test("ADD killed at any moment, then ADD again: it works", async () => {
  const conf = node.bridgeConf({ isDefaultGateway: true });
  for (let round = 0; round < 15; round++) {
    const c = node.container();
    await callAndKill(node, "ADD", conf, { netns: c }, momentOf(round, 10));
    await node.call("DEL", conf, { netns: c });
    await node.ok("ADD", conf, { netns: c });
    c.run("ping", "-c1", "-W1", "10.88.0.1");
    await node.ok("DEL", conf, { netns: c });
  }
  expect([node.veths(), node.leases()]).toEqual([[], []]);
});

test("DEL killed at any moment, then DEL: nothing stays", async () => {
  const conf = node.bridgeConf();
  const c = node.container();
  await node.ok("ADD", conf, { netns: c });
  await node.ok("DEL", conf, { netns: c });
  const before = traces();
  const ends = { killed: 0, ended: 0 };
  for (let round = 0; round < 60; round++) {
    await node.ok("ADD", conf, { netns: c });
    ends[await callAndKill(node, "DEL", conf, { netns: c }, momentOf(round, 40))]++;
    await node.ok("DEL", conf, { netns: c });
    expect(traces(), `round ${round}`).toEqual(before);
  }
  expect(ends.killed).toBeGreaterThan(10);
});

test("killed ADDs of many containers, no DEL: GC finds them all", async () => {
  const conf = node.bridgeConf();
  const kept = node.container();
  await node.ok("ADD", conf, { netns: kept, id: "kept" });
  const before = traces();
  for (let round = 0; round < 15; round++) {
    const call = { netns: node.container(), id: `killed-${round}` };
    await callAndKill(node, "ADD", conf, call, momentOf(round, 10));
  }
  const valid = [{ containerID: "kept", ifname: "eth0" }];
  await node.ok("GC", { ...conf, "cni.dev/valid-attachments": valid });
  expect(traces()).toEqual(before);
});
