import { dirname } from "node:path";
import { type Conf, goBin, makeNode, type NodeCall, type TestNode } from "@tscni/test-support";
import { specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
/** The folder of the Go plugins. */
let go: string;
beforeEach((test) => {
  node = makeNode();
  go = dirname(goBin("host-local", test));
});
afterEach(() => node.close());

const confOf = (own: object = {}, cniVersion = "1.1.0"): Conf => ({
  cniVersion,
  name: "testnet",
  type: "host-local",
  ipam: {
    type: "host-local",
    dataDir: node.dataDir,
    ranges: [
      [{ subnet: "10.88.0.0/29" }],
      [{ subnet: "fd88::/64", rangeStart: "fd88::10", rangeEnd: "fd88::12" }],
    ],
    ...own,
  },
});

/** The files that Go knows, by name: content. */
const files = () =>
  Object.fromEntries(Object.entries(node.state().files).filter(([path]) => !/[/]\.tscni-[^/]*$/.test(path)));

/** Runs the same calls with both, each from an empty folder, and expects the same answers and files. */
async function expectSame(calls: [verb: string, conf: Conf, call: NodeCall][]): Promise<void> {
  const runs = [];
  for (const bin of [go, undefined]) {
    node.resetLeases();
    const answers = [];
    for (const [verb, conf, call] of calls) {
      const { status, json } = await node.call(verb, conf, {
        netns: "/run/netns/x",
        ...call,
        ...(bin ? { bin } : {}),
      });
      answers.push(status === 0 ? json : { failed: json.msg });
    }
    runs.push({ answers, files: files() });
  }
  expect(runs[1]).toEqual(runs[0]);
}

describe("host-local beside Go's", () => {
  test.each(specVersions)(
    "cniVersion %s: the same result and files; each CHECKs and DELs the other's",
    async (cniVersion) => {
      const conf = confOf({ routes: [{ dst: "0.0.0.0/0" }, { dst: "fd00::/8", gw: "fd88::5" }] }, cniVersion);
      await expectSame([
        ["ADD", conf, {}],
        ["ADD", conf, { id: "c2" }],
      ]);
      for (const [adder, deleter] of [
        [undefined, go],
        [go, undefined],
      ]) {
        node.resetLeases();
        const [by, then] = [adder, deleter].map((bin) => ({ netns: "/x", ...(bin ? { bin } : {}) }));
        await node.ok("ADD", conf, by);
        if (!["0.1.0", "0.2.0", "0.3.0", "0.3.1"].includes(cniVersion)) await node.ok("CHECK", conf, then);
        await node.ok("DEL", conf, then);
        expect(node.leases()).toEqual([]);
      }
    },
  );

  test("round robin goes on where the other stopped", async () => {
    const conf = confOf();
    const seen: string[] = [];
    for (let i = 0; i < 6; i++) {
      const call = { id: `c${i}`, netns: "/x", ...(i % 2 ? { bin: go } : {}) };
      seen.push((await node.ok("ADD", conf, call)).ips[0].address);
      await node.ok("DEL", conf, call);
    }
    expect(seen).toEqual([
      "10.88.0.2/29",
      "10.88.0.3/29",
      "10.88.0.4/29",
      "10.88.0.5/29",
      "10.88.0.6/29",
      "10.88.0.2/29",
    ]);
  });
});
