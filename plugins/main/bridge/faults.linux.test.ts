import { chmodSync, existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { variantFolder, variants } from "@tscni/iptables/testing";
import {
  type Conf,
  envOf,
  makeNode,
  type PluginOutcome,
  runPlugin,
  type TestNamespace,
  type TestNode,
  temporaryFolder,
} from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const name = "faultnet";
const folders = ["masquerade", "macspoofchk"].map((kind) => `/run/tscni/${kind}/${name}`);
const path = process.env.PATH;
let node: TestNode;
let c: TestNamespace;
let bin: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  node = makeNode();
  c = node.container();
  bin = temporaryFolder();
});
afterEach(() => {
  process.env.PATH = path;
  node.close();
  bin.remove();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const conf = (more: object = {}): Conf =>
  node.bridgeConf({ name, isGateway: true, ipMasq: true, ipMasqBackend: "nftables", ...more });
const left = (): unknown[] => [
  node.host
    .run("nft", "list", "ruleset")
    .split("\n")
    .filter((line) => /tscni|cni_|CNI-|saddr|masquerade/.test(line)),
  folders.flatMap((folder) => (existsSync(folder) ? readdirSync(folder) : [])),
  node.veths(),
  node.leases(name),
];
const nothing = [[], [], [], []];

/** Puts a program of ours before the real one. */
function shadow(program: string, script: string): void {
  const file = join(bin.path, program);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  process.env.PATH = `${bin.path}:${path}`;
}
const unshadow = () => {
  process.env.PATH = path;
};

/** Runs a verb where programs are missing: something that can't be run lies over them. */
function callWithout(programs: string[], verb: string, config: Conf): Promise<PluginOutcome> {
  const hide = programs.map((program) => `mount --bind /dev/null /usr/sbin/${program}`).join(" && ");
  return runPlugin({
    bin: Bun.which("unshare") ?? "/usr/bin/unshare",
    args: ["-m", "sh", "-c", `${hide} && exec "$@"`, "sh", ...node.command("bridge")],
    env: envOf(verb, { netns: c }),
    stdin: config,
  });
}

const backends = [
  ["nftables", "nft"],
  ["iptables", "iptables-restore"],
  ["iptables", "ip6tables-restore"],
] as const;

describe.each(backends)("%s, %s", (ipMasqBackend, program) => {
  const own = () => conf({ ipMasqBackend });

  test.each([
    ["fails", "echo 'Error: no' >&2; exit 1", /Error: no/],
    ["is killed", "kill -9 $$", /ended by signal 9/],
    ["says nothing", "exit 3", /no message/],
  ])("ADD takes everything back when it %s", async (_, script, message) => {
    shadow(program, script);
    const error = await node.error("ADD", own(), { netns: c });
    expect(`${error.msg} ${error.details}`).toMatch(message);
    unshadow();
    await node.ok("DEL", own(), { netns: c }); // what could not be taken back with a broken program
    expect(left()).toEqual(nothing);
    await node.ok("ADD", own(), { netns: c });
  });

  test("ADD fails with a word on what to install when it is missing, and leaves nothing", async () => {
    const { status, json } = await callWithout([program], "ADD", own());
    expect([status, json.msg]).toEqual([
      1,
      expect.stringMatching(/missing: install the package (nf|ip)tables/),
    ]);
    expect(left()).toEqual(nothing);
  });

  test("STATUS says 50 when it is missing", async () => {
    const { status, json } = await callWithout([program === "nft" ? "nft" : "iptables"], "STATUS", own());
    expect([status, json.code]).toEqual([1, 50]);
  });

  test("DEL does the rest, says what failed, and is done when it works again", async () => {
    await node.ok("ADD", own(), { netns: c });
    shadow(program, "echo 'Error: no' >&2; exit 1");
    const error = await node.error("DEL", own(), { netns: c });
    expect(error.msg).toMatch(/Error: no/);
    expect(node.veths()).toEqual([]);
    unshadow();
    await node.ok("DEL", own());
    expect(left()).toEqual(nothing);
  });

  test("killed in the middle of ADD, at many moments: DEL, GC and the next ADD find what is left", async () => {
    const real = Bun.which(program);
    shadow(program, `sleep 0.01; exec ${real} "$@"`); // so that kills fall before, within and after it
    for (let ms = 2; ms <= 26; ms += 3) {
      const way = ["DEL", "GC", "ADD"][ms % 3]!;
      const child = Bun.spawn(node.command("bridge"), {
        env: { PATH: process.env.PATH!, ...(envOf("ADD", { netns: c }) as Record<string, string>) },
        stdin: new TextEncoder().encode(JSON.stringify(own())),
      });
      await Bun.sleep(ms);
      child.kill("SIGKILL");
      await child.exited;
      await Bun.sleep(40); // the program goes on by itself
      if (way === "DEL") await node.ok("DEL", own(), { netns: c });
      if (way === "GC") await node.ok("GC", { ...own(), "cni.dev/valid-attachments": [] });
      if (way === "ADD") {
        await node.call("DEL", own(), { netns: c });
        const prevResult = await node.ok("ADD", own(), { netns: c });
        await node.ok("CHECK", { ...own(), prevResult }, { netns: c });
        await node.ok("DEL", own(), { netns: c });
      }
      const [rules, records] = left();
      expect([rules, records], `${ms} ms, ${way}`).toEqual([[], []]);
      await node.ok("DEL", own(), { netns: c });
    }
  });
});

test("without iptables the default is nftables, and what is left when neither works is nothing", async () => {
  const own = conf({ ipMasqBackend: undefined });
  const { status, json } = await callWithout(["iptables", "ip6tables"], "ADD", own);
  expect(status).toBe(0);
  expect(String(left()[0])).toContain("tscni_masquerade");
  expect((await callWithout(["iptables", "ip6tables"], "CHECK", { ...own, prevResult: json })).status).toBe(
    0,
  );
  expect((await callWithout(["iptables", "ip6tables"], "STATUS", own)).status).toBe(0);
  expect((await callWithout(["iptables", "ip6tables"], "DEL", own)).status).toBe(0);
  expect(left()).toEqual(nothing);
  const none = await callWithout(["iptables", "ip6tables", "nft"], "ADD", own);
  expect(none.json.msg).toMatch(/install the package iptables/);
  expect(left()).toEqual(nothing);
});

describe("undo takes the rules back when a later step fails", () => {
  const own = { macspoofchk: true };
  test.each(["iptables", "nftables"])("a route, %s", async (ipMasqBackend) => {
    const good = conf({ ipMasqBackend, ...own });
    const bad = { ...good, ipam: { ...good.ipam, routes: [{ dst: "10.77.0.0/16", gw: "172.31.0.1" }] } };
    const error = await node.error("ADD", bad, { netns: c });
    expect(error.details ?? "").not.toContain("could not be taken back");
    expect(left()).toEqual(nothing);
  });

  test("macspoofchk after masquerading", async () => {
    shadow(
      "nft",
      `grep -q macspoofchk /dev/stdin && grep -q 'add element' /dev/stdin && { echo no >&2; exit 1; }; exec ${Bun.which("nft")} -f /dev/stdin`,
    );
    const error = await node.error("ADD", conf(own), { netns: c });
    expect(error.msg).toBe("nft: no");
    expect(error.details ?? "").not.toContain("could not be taken back");
    expect(left()).toEqual(nothing);
  });

  test.each(["iptables", "nftables"])("the result can't be written, %s", async (ipMasqBackend) => {
    const outcome = await runPlugin({
      bin: Bun.which("bash") ?? "/bin/bash",
      args: ["-c", '"$@" >/dev/full', "bash", ...node.command("bridge")],
      env: envOf("ADD", { netns: c }),
      stdin: conf({ ipMasqBackend, ...own }),
    });
    expect(outcome.status).not.toBe(0);
    expect(left()).toEqual(nothing);
  });
});

test.runIf(variants.includes("legacy"))("another program's hold of the lock is waited for", async () => {
  process.env.PATH = `${variantFolder("legacy")}:${path}`;
  process.env.XTABLES_LOCKFILE = join(bin.path, "lock");
  const holder = Bun.spawn(["flock", process.env.XTABLES_LOCKFILE, "sleep", "1"]);
  while (!existsSync(process.env.XTABLES_LOCKFILE)) await Bun.sleep(5);
  await Bun.sleep(50);
  const start = performance.now();
  const outcome = await runPlugin({
    bin: Bun.which("nsenter") ?? "",
    args: node.command("bridge").slice(1),
    env: { ...envOf("ADD", { netns: c }), XTABLES_LOCKFILE: process.env.XTABLES_LOCKFILE },
    stdin: conf({ ipMasqBackend: "iptables" }),
  });
  delete process.env.XTABLES_LOCKFILE;
  expect(outcome.status).toBe(0);
  expect(performance.now() - start).toBeGreaterThan(500);
  await holder.exited;
  await node.ok("DEL", conf(), { netns: c });
  expect(left()).toEqual(nothing);
});
