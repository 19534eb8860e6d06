import { existsSync } from "node:fs";
import { type Conf, ip, makeLan, makeNode, namesIn, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { callAndKill } from "./support.ts";

let node: TestNode;
beforeEach(() => {
  node = makeNode();
  makeLan(node, "10.88.0.1/24");
});
afterEach(() => node.close());

/** A network of this file's own: all tests have one /run. */
const name = "killsmain";
const configs: Record<string, object> = {
  ptp: { ipMasq: true },
  macvlan: { master: "eth0" },
  tap: {},
  "host-device": { device: "eth0" },
};
/** Milliseconds, over the whole of a call. */
const moments = Array.from({ length: 16 }, (_, i) => 1 + i * 0.7);

describe.each(Object.keys(configs))("%s, killed at any moment", (type) => {
  const conf = (more: object = {}): Conf => node.conf(type, { name, ...configs[type], ...more });
  const traces = () => ({
    host: namesIn(node.host),
    alias: ip(node.host, "link", "show", "dev", "eth0")[0].ifalias,
    leases: node.leases(name),
    rules: /10\.88\.0\.|fd88::/.test(node.host.run("nft", "list", "ruleset")),
    records: ["masquerade", "host-device"].filter((kind) => existsSync(`/run/tscni/${kind}/${name}`)),
  });
  const nothing = { host: ["eth0", "lo"], alias: undefined, leases: [], rules: false, records: [] };

  test("in ADD: DEL leaves nothing, and the next ADD succeeds", async () => {
    const netns = node.container();
    for (const ms of moments) {
      await callAndKill(node, "ADD", conf(), { netns }, ms);
      await node.ok("DEL", conf(), { netns });
      expect(traces(), `${ms} ms`).toEqual(nothing);
      expect(namesIn(netns), `${ms} ms`).toEqual(["lo"]);
    }
    await node.ok("ADD", conf(), { netns });
    await node.ok("DEL", conf(), { netns });
  });

  test("in DEL: DEL again leaves nothing", async () => {
    const netns = node.container();
    for (const ms of moments) {
      await node.ok("ADD", conf(), { netns });
      await callAndKill(node, "DEL", conf(), { netns }, ms * 3);
      await node.ok("DEL", conf(), { netns });
      expect(traces(), `${ms * 3} ms`).toEqual(nothing);
    }
  });

  test("in ADD, its namespace alive: GC leaves nothing on the host", async () => {
    for (const ms of moments) {
      const netns = node.container();
      await callAndKill(node, "ADD", conf(), { netns }, ms);
      if (type !== "host-device") netns.close();
      await node.ok("GC", conf({ "cni.dev/valid-attachments": [] }));
      expect(traces(), `${ms} ms`).toEqual(nothing);
    }
  });
});
