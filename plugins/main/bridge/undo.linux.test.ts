import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Conf,
  distBin,
  envOf,
  ip,
  makeNode,
  runPlugin,
  type TestNamespace,
  type TestNode,
  temporaryFolder,
} from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
let c: TestNamespace;
beforeEach(() => {
  node = makeNode();
  c = node.container();
});
afterEach(() => node.close());

/** What an ADD must not leave: links on either side, leases, addresses, routes. The round-robin mark moves on. */
const traces = () => {
  const { files: _, ...kernel } = node.state();
  return { kernel, container: c.run("ip", "addr"), leases: node.leases() };
};

/** Has the bridge made, fails an ADD and expects that it leaves nothing and that the next one succeeds. */
async function expectTakenBack(good: Conf, bad: Conf, message: RegExp): Promise<void> {
  await node.ok("ADD", good, { netns: node.container(), id: "first" });
  const before = traces();
  const error = await node.error("ADD", bad, { netns: c });
  expect(`${error.msg}; ${error.details ?? ""}`).toMatch(message);
  expect(error.details ?? "").not.toContain("could not be taken back");
  expect(traces()).toEqual(before);
  await node.ok("ADD", { ...good, name: "next" }, { netns: c });
}

describe("an ADD that fails takes back everything", () => {
  test("after the veth: the kernel has no VLAN filtering for the port", async (t) => {
    const before = traces();
    const outcome = await node.call("ADD", node.bridgeConf({ vlan: 100 }), { netns: c });
    if (outcome.status === 0) t.skip("this kernel has bridge VLAN filtering");
    expect(outcome.json.msg).toMatch(/EOPNOTSUPP/);
    expect(traces()).toEqual(before);
    await expectTakenBack(node.bridgeConf(), node.bridgeConf({ vlan: 100 }), /EOPNOTSUPP/);
  });

  test("after the veth: no address is left", async () => {
    const conf = node.bridgeConf({}, ["10.88.0.0/30"]);
    await node.ok("ADD", conf, { netns: node.container(), id: "other" });
    const before = traces();
    const error = await node.error("ADD", conf, { netns: c });
    expect(error.msg).toContain("no IP addresses available in range set: 10.88.0.1-10.88.0.2");
    expect(traces()).toEqual(before);
  });

  test("after the veth: of two range sets the second is exhausted", async () => {
    const conf = node.bridgeConf({}, ["10.88.0.0/24", "10.89.0.0/30"]);
    await node.ok("ADD", conf, { netns: node.container(), id: "other" });
    const before = traces();
    expect((await node.error("ADD", conf, { netns: c })).msg).toContain("10.89.0.1-10.89.0.2");
    expect(traces()).toEqual(before);
  });

  test("after the veth: the IPAM plugin is missing", async () => {
    const conf = node.bridgeConf();
    await expectTakenBack(conf, { ...conf, ipam: { type: "nonesuch" } }, /nonesuch/);
  });

  test("after the lease: the bridge has another address", async () => {
    const [one, two] = [["10.88.0.0/24"], ["10.99.0.0/24"]];
    const bad = node.bridgeConf({ isGateway: true }, two);
    const message =
      /^"brtest" already has an IP address different from 10\.99\.0\.1\/24; it has 10\.88\.0\.1\/24/;
    await expectTakenBack(node.bridgeConf({ isGateway: true }, one), bad, message);
  });

  test("after the addresses: the kernel refuses a route", async () => {
    const conf = node.bridgeConf();
    const routes = [{ dst: "10.77.0.0/16", gw: "172.31.0.1" }];
    await expectTakenBack(
      conf,
      { ...conf, ipam: { ...conf.ipam, routes } },
      /10\.77\.0\.0\/16 via 172\.31\.0\.1/,
    );
  });

  test.each([
    ["full", ">/dev/full"],
    ["a pipe that nobody reads", "| :"],
  ])("after everything: stdout is %s", async (_, redirection) => {
    const conf = node.bridgeConf({ isGateway: true });
    await node.ok("ADD", conf, { netns: node.container(), id: "first" });
    const before = traces();
    const script = `set -o pipefail; { sleep 0.05; "$@"; } ${redirection}`;
    const outcome = await runPlugin({
      bin: Bun.which("bash") ?? "/bin/bash",
      args: ["-c", script, "bash", ...node.command("bridge")],
      env: envOf("ADD", { netns: c }),
      stdin: conf,
    });
    expect(outcome.status).not.toBe(0);
    expect(outcome.stdout).toBe("");
    expect(traces()).toEqual(before);
  });
});

describe("with an IPAM plugin that", () => {
  let folder: ReturnType<typeof temporaryFolder>;
  beforeEach(() => {
    folder = temporaryFolder();
    symlinkSync(join(distBin, "bridge"), join(folder.path, "bridge"));
  });
  afterEach(() => folder.remove());

  /** A plugin as others write them: a shell script. */
  const writeIpam = (script: string) =>
    writeFileSync(join(folder.path, "script-ipam"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const path = () => `${folder.path}:/usr/bin:/bin`;

  test("answers without an address: it gets its DEL", async () => {
    const log = join(folder.path, "log");
    writeIpam(`echo $CNI_COMMAND >>${log}\necho '{}'`);
    const conf = node.bridgeConf({ ipam: { type: "script-ipam" } });
    const error = await node.error("ADD", conf, { netns: c, path: path() });
    expect(error.msg).toBe("IPAM plugin returned missing IP config");
    expect(readFileSync(log, "utf8")).toBe("ADD\nDEL\n");
    expect(node.veths()).toEqual([]);
  });

  test("fails, and fails in DEL, too: the link goes all the same", async () => {
    writeIpam(`echo '{"code": 11, "msg": "no '$CNI_COMMAND' today"}'; exit 1`);
    const conf = node.bridgeConf({ ipam: { type: "script-ipam" } });
    const error = await node.error("ADD", conf, { netns: c, path: path() });
    expect(error).toMatchObject({ code: 11, msg: "no ADD today" });
    expect(node.veths()).toEqual([]);
    await node.ok("ADD", node.bridgeConf(), { netns: c });
    expect(await node.error("DEL", conf, { netns: c, path: path() })).toMatchObject({
      code: 11,
      msg: "no DEL today",
    });
    expect(node.veths()).toEqual([]);
  });

  test.each([
    ["takes the port down: it does not come up", "set dev $port down", /bridge port in error state/],
    ["takes the port away", "del dev $port", /./],
  ])("%s", async (_, command, message) => {
    writeIpam(
      `for port in $(ip -o link show type veth | sed 's/^[0-9]*: //; s/@.*//'); do ip link ${command}; done 2>/dev/null\n` +
        `exec ${join(distBin, "host-local")}`,
    );
    const conf = node.bridgeConf();
    const bad = { ...conf, ipam: { ...conf.ipam, type: "script-ipam" } };
    await node.ok("DEL", conf, { netns: c });
    const error = await node.error("ADD", bad, { netns: c, path: path() });
    expect(error.msg).toMatch(message);
    expect(error.details ?? "").not.toContain("could not be taken back");
    expect([node.veths(), node.leases()]).toEqual([[], []]);
    expect(ip(c, "link").map((link) => link.ifname)).toEqual(["lo"]);
  });
});

describe("forceAddress", () => {
  test("replaces the bridge's other IPv4 address, and an IPv6 one of an overlapping subnet", async () => {
    await node.ok("ADD", node.bridgeConf({ isGateway: true }), { netns: c });
    const other = node.bridgeConf({ name: "n2", isGateway: true, forceAddress: true }, [
      "10.99.0.0/24",
      "fd88::/48",
    ]);
    await node.ok("ADD", other, { netns: node.container(), id: "c2" });
    const addresses = node.host.run("ip", "-br", "addr", "show", "dev", "brtest");
    expect(addresses).toContain("10.99.0.1/24");
    expect(addresses).toContain("fd88::1/48");
    expect(addresses).not.toMatch(/10\.88\.0\.1|fd88::1\/64/);
  });

  test("is not needed for an IPv6 subnet beside the others", async () => {
    await node.ok("ADD", node.bridgeConf({ isGateway: true }, ["fd88::/64"]), { netns: c });
    const beside = node.bridgeConf({ name: "n2", isGateway: true }, ["fd99::/64"]);
    await node.ok("ADD", beside, { netns: node.container(), id: "c2" });
    expect(node.host.run("ip", "-br", "addr", "show", "dev", "brtest")).toMatch(
      /fd88::1\/64.*fd99::1\/64|fd99::1\/64.*fd88::1\/64/,
    );
  });
});
