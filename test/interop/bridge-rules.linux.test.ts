import { existsSync, readdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { type Conf, goBin, makeNode, type TestNamespace, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

/** Of a network of this file's own: all tests have one /run. */
const network = "rulesnet";
const folders = ["masquerade", "macspoofchk"].map((kind) => `/run/tscni/${kind}/${network}`);
let node: TestNode;
/** The folder of the Go plugins. */
let go: string;
let c: TestNamespace;
beforeEach((test) => {
  node = makeNode();
  go = dirname(goBin("bridge", test));
  c = node.container();
});
afterEach(() => {
  node.close();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const ruleset = (): string =>
  node.host
    .run("nft", "list", "ruleset")
    .replaceAll(/ counter packets \d+ bytes \d+/g, "")
    .replaceAll(/(daddr != (224|ff00).*) masquerade$/gm, "$1 ");

/** What is left: nothing but the empty tables that iptables-nft makes and never removes. */
const left = (): string[] =>
  ruleset()
    .split("\n")
    .filter((line) => line.trim() !== "" && line.trim() !== "}" && !line.startsWith("#"))
    .filter(
      (line) =>
        !/^table ip6? nat |^\tchain (PREROUTING|INPUT|OUTPUT|POSTROUTING) |^\t\ttype nat hook/.test(line),
    );
const records = (): string[] => folders.flatMap((folder) => (existsSync(folder) ? readdirSync(folder) : []));
const nothingLeft = () =>
  expect([left(), records(), node.veths(), node.leases(network)]).toEqual([[], [], [], []]);

const dual = ["10.88.0.0/24", "fd88::/64"];
const cases: [string, object, string[]][] = [
  ["masquerading, iptables", { ipMasq: true, ipMasqBackend: "iptables" }, dual.slice(0, 1)],
  ["masquerading, iptables, dual stack", { ipMasq: true, ipMasqBackend: "iptables" }, dual],
  ["masquerading, the default backend", { ipMasq: true }, dual],
  ["masquerading, nftables", { ipMasq: true, ipMasqBackend: "nftables" }, dual.slice(1)],
  ["masquerading, nftables, dual stack", { ipMasq: true, ipMasqBackend: "nftables" }, dual],
  ["macspoofchk", { macspoofchk: true }, dual],
  ["macspoofchk and nftables", { macspoofchk: true, ipMasq: true, ipMasqBackend: "nftables" }, dual],
];

describe.each(cases)("%s", (_, own, subnets) => {
  const confOf = (more: object = {}): Conf =>
    node.bridgeConf({ name: network, isGateway: true, ...own, ...more }, subnets);

  test("what Go adds we CHECK and DEL, and nothing is left", async () => {
    const prevResult = await node.ok("ADD", confOf(), { netns: c, bin: go });
    expect(left()).not.toEqual([]);
    await node.ok("CHECK", confOf({ prevResult }), { netns: c });
    await node.ok("DEL", confOf({ prevResult }), { netns: c });
    nothingLeft();
  });

  test("what Go adds we DEL without its namespace and result", async () => {
    await node.ok("ADD", confOf(), { netns: c, bin: go });
    await node.ok("DEL", confOf());
    expect([left(), records(), node.leases(network)]).toEqual([[], [], []]);
  });

  test("of what Go added for two we delete one's alone", async () => {
    const other = { netns: node.container(), id: "c2" };
    const otherResult = await node.ok("ADD", confOf(), { ...other, bin: go });
    const before = left().sort();
    const prevResult = await node.ok("ADD", confOf(), { netns: c, bin: go });
    await node.ok("DEL", confOf({ prevResult }), { netns: c });
    expect(left().sort()).toEqual(before);
    await node.ok("CHECK", confOf({ prevResult: otherResult }), other);
    await node.ok("DEL", confOf({ prevResult: otherResult }), other);
    nothingLeft();
  });

  test("what we add Go DELs, and after GC nothing is left", async () => {
    const prevResult = await node.ok("ADD", confOf(), { netns: c });
    await node.ok("DEL", confOf({ prevResult }), { netns: c, bin: go });
    // Under nftables the rules are in a form of ours, which Go passes over.
    const others = left();
    if (!JSON.stringify(own).includes("nftables") && !("macspoofchk" in own)) expect(others).toEqual([]);
    await node.ok("GC", confOf({ "cni.dev/valid-attachments": [] }));
    nothingLeft();
  });

  test("ours and Go's side by side, each deleted by the other's kind", async () => {
    const other = { netns: node.container(), id: "c2" };
    const ours = await node.ok("ADD", confOf(), { netns: c });
    const theirs = await node.ok("ADD", confOf(), { ...other, bin: go });
    await node.ok("CHECK", confOf({ prevResult: ours }), { netns: c });
    await node.ok("CHECK", confOf({ prevResult: theirs }), other);
    await node.ok("DEL", confOf({ prevResult: theirs }), other);
    await node.ok("CHECK", confOf({ prevResult: ours }), { netns: c });
    await node.ok("DEL", confOf({ prevResult: ours }), { netns: c });
    nothingLeft();
  });
});

test("the rules under iptables are Go's, one for one", async () => {
  const conf = node.bridgeConf(
    { name: network, isGateway: true, ipMasq: true, ipMasqBackend: "iptables" },
    dual,
  );
  const save = () =>
    ["iptables-save", "ip6tables-save"].flatMap((program) =>
      node.host
        .run(program, "-t", "nat")
        .split("\n")
        .filter((line) => line.startsWith("-A")),
    );
  await node.ok("ADD", conf, { netns: c, bin: go });
  const theirs = save();
  await node.ok("DEL", conf, { netns: c, bin: go });
  node.resetLeases();
  await node.ok("ADD", conf, { netns: c });
  expect(save()).toEqual(theirs);
});

test("GC removes what Go left on either backend, as far as it tells its network", async () => {
  for (const ipMasqBackend of ["iptables", "nftables"]) {
    const conf = node.bridgeConf({ name: network, isGateway: true, ipMasq: true, ipMasqBackend }, dual);
    const places = ["a", "b"].map((id) => ({ netns: node.container(), id }));
    const results: object[] = [];
    for (const place of places) results.push(await node.ok("ADD", conf, { ...place, bin: go }));
    const valid = [{ containerID: "b", ifname: "eth0" }];
    const { stderr } = await node.call("GC", { ...conf, "cni.dev/valid-attachments": valid });
    expect(stderr).toMatch(/gc: removed/);
    await node.ok("CHECK", { ...conf, prevResult: results[1] }, places[1]);
    await node.ok("GC", { ...conf, "cni.dev/valid-attachments": [] });
    expect(left()).toEqual([]);
    for (const [i, place] of places.entries())
      await node.ok("DEL", { ...conf, prevResult: results[i] }, place);
  }
});

test("ebtables' own rules in the table that Go uses for macspoofchk stay", async () => {
  const conf = node.bridgeConf({ name: network, macspoofchk: true });
  node.host.run("ebtables-nft", "-t", "nat", "-A", "PREROUTING", "-s", "02:00:00:00:00:77", "-j", "DROP");
  const before = left();
  await node.ok("ADD", conf, { netns: c, bin: go });
  await node.ok("DEL", conf, { netns: c });
  expect(left()).toEqual(before);
});
