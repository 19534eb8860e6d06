import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type Conf, ip, makeNode, type TestNamespace, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";
import { callAndKill } from "./support.ts";

// Meta plugins killed at any moment of an ADD: a DEL afterwards leaves nothing that outlives the interface.

let node: TestNode;
let c: TestNamespace;
let prevResult: { interfaces: { name: string }[] };
beforeEach(async () => {
  node = makeNode();
  c = node.container();
  prevResult = await node.ok("ADD", node.bridgeConf({ isDefaultGateway: true }), { netns: c });
});
afterEach(() => node.close());

const rounds = 80;

/** Kills an ADD in each round, spread evenly over the life of one that lives; `settle` has to clean up after each. */
async function killAdds(
  conf: () => Conf,
  isDone: () => boolean,
  settle: (round: number) => Promise<void>,
): Promise<void> {
  const lives: number[] = [];
  for (let i = 0; i < 5; i++) {
    lives.push((await node.call("ADD", conf(), { netns: c })).ms);
    await settle(-1);
  }
  const life = Math.max(...lives);
  let done = 0;
  // The moment in which something is done and more is to do may be short.
  for (let round = 0; round < rounds || (done === 0 && round < 20 * rounds); round++) {
    const moment = ((round * 0.618034) % 1) * life;
    const end = await callAndKill(node, "ADD", conf(), { netns: c }, moment);
    if (end === "killed" && isDone()) done++;
    await settle(round);
  }
  expect(done, "rounds that killed with something done").toBeGreaterThan(0);
}

test("bandwidth: no ifb stays, with or without a namespace", async () => {
  const limits = { ingressRate: 8e6, ingressBurst: 8e5, egressRate: 8e6, egressBurst: 8e5 };
  const conf = { cniVersion: "1.1.0", name: "testnet", type: "bandwidth", prevResult, ...limits };
  const ifbs = () => ip(node.host, "link", "show", "type", "ifb").length;
  await killAdds(
    () => conf,
    () => ifbs() > 0,
    async (round) => {
      await node.ok("DEL", conf, { netns: round % 2 ? c : undefined });
      expect(ifbs(), `round ${round}`).toBe(0);
    },
  );
  await node.ok("ADD", conf, { netns: c });
  await node.ok("CHECK", conf, { netns: c });
});

test("tuning: the interface is as it was, and no backup stays", async () => {
  const dataDir = join(node.dataDir, "tuning");
  const wanted = { mac: "0a:00:00:00:00:05", mtu: 1400, promisc: true, allmulti: true, txQLen: 5 };
  const sysctl = { "net.ipv4.conf.IFNAME.arp_ignore": "1" };
  const conf = {
    cniVersion: "1.1.0",
    name: "testnet",
    type: "tuning",
    prevResult,
    dataDir,
    sysctl,
    ...wanted,
  };
  const settings = () => {
    const [{ address, mtu, flags, txqlen }] = ip(c, "link", "show", "dev", "eth0");
    return { address, mtu, flags, txqlen, ignore: c.run("sysctl", "-n", "net.ipv4.conf.eth0.arp_ignore") };
  };
  const backups = () => (existsSync(dataDir) ? readdirSync(dataDir) : []);
  const before = settings();
  await killAdds(
    () => conf,
    () => backups().length > 0,
    async (round) => {
      await node.ok("DEL", conf, { netns: c });
      expect(settings(), `round ${round}`).toEqual(before);
      expect(backups()).toEqual([]);
    },
  );
});

test("sbr: no rule and no table stays", async () => {
  const conf = { cniVersion: "1.1.0", name: "sbr-kills", type: "sbr", prevResult };
  const rules = () => c.run("sh", "-c", "ip rule; ip -6 rule");
  const routes = () => c.run("sh", "-c", "ip route show table all; ip -6 route show table all").split("\n");
  const ofTables = () => routes().filter((route) => /table \d/.test(route));
  const before = rules();
  await killAdds(
    () => conf,
    () => rules() !== before,
    async (round) => {
      await node.ok("DEL", conf, { netns: c });
      expect([rules(), ofTables()], `round ${round}`).toEqual([before, []]);
      // What ADD has moved away comes back with a new interface only.
      await node.ok("DEL", node.bridgeConf(), { netns: c });
      conf.prevResult = await node.ok("ADD", node.bridgeConf({ isDefaultGateway: true }), { netns: c });
    },
  );
});

test("many at once: each container gets its own, and nothing stays", async () => {
  const before = ip(node.host, "link").length;
  const limits = { ingressRate: 8e6, ingressBurst: 8e5, egressRate: 8e6, egressBurst: 8e5 };
  const attachments = Array.from({ length: 24 }, (_, i) => ({ netns: node.container(), id: `many${i}` }));
  const dataDir = join(node.dataDir, "tuning");
  await Promise.all(
    attachments.map(async (call) => {
      const chain: Conf[] = [
        { type: "tuning", mtu: 1400, dataDir, sysctl: { "net.ipv4.conf.IFNAME.arp_ignore": "1" } },
        { type: "bandwidth", ...limits },
        { type: "sbr" },
      ].map((own) => ({ cniVersion: "1.1.0", name: "meta-many", ...own }));
      let prevResult = await node.ok("ADD", node.bridgeConf({ isDefaultGateway: true }), call);
      for (const conf of chain) prevResult = await node.ok("ADD", { ...conf, prevResult }, call);
      for (const conf of chain) await node.ok("CHECK", { ...conf, prevResult }, call);
      for (const conf of chain.toReversed()) await node.ok("DEL", { ...conf, prevResult }, call);
      await node.ok("DEL", node.bridgeConf(), call);
    }),
  );
  expect(ip(node.host, "link")).toHaveLength(before);
  expect(readdirSync(dataDir)).toEqual([]);
  expect(existsSync("/run/tscni/sbr/meta-many")).toBe(false);
});
