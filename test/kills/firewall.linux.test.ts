import { existsSync, readdirSync, rmSync } from "node:fs";
import { type Conf, makeNode, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";
import { callAndKill } from "./support.ts";

let node: TestNode;
beforeEach(() => {
  node = makeNode();
});
afterEach(() => {
  node.close();
  rmSync(records, { recursive: true, force: true });
});

const records = "/run/tscni/firewall/fwkill";
const call = { netns: "/run/netns/nowhere" };
const addresses = ["10.205.0.5/24", "fd05::5/64"];

/** Whatever names the container's addresses, in any backend. */
function traces(): string[] {
  const texts = [
    node.host.run("iptables-save", "-t", "filter"),
    node.host.run("ip6tables-save", "-t", "filter"),
    node.host.run("nft", "list", "ruleset"),
  ];
  return texts.flatMap((text) => text.split("\n")).filter((line) => /10\.205\.0\.5|fd05::5/.test(line));
}

test.each(["iptables", "nftables"])(
  "%s: after a kill at any moment, DEL without a result leaves nothing",
  async (backend) => {
    const conf: Conf = {
      cniVersion: "1.1.0",
      name: "fwkill",
      type: "firewall",
      backend,
      ingressPolicy: "isolated",
    };
    const attached: Conf = {
      ...conf,
      prevResult: {
        cniVersion: "1.1.0",
        interfaces: [{ name: "brkill" }],
        ips: addresses.map((address) => ({ address })),
      },
    };
    const outcomes = new Set<string>();
    for (let ms = 0; ms < 24; ms++) {
      outcomes.add(await callAndKill(node, "ADD", attached, call, ms));
      outcomes.add(await callAndKill(node, "DEL", conf, call, 24 - ms));
      await node.ok("DEL", conf, call);
      expect(traces(), `${ms} ms`).toEqual([]);
      expect(existsSync(records) ? readdirSync(records).filter((name) => !name.startsWith(".")) : []).toEqual(
        [],
      );
    }
    expect([...outcomes].toSorted()).toEqual(["ended", "killed"]);
  },
);
