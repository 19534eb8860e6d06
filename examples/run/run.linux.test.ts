import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { commandIn, distBin, ip, makeNamespace, root, run, type TestNamespace } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";

let host: TestNamespace;
beforeEach(() => {
  host = makeNamespace("run-host");
  host.run("ip", "link", "set", "lo", "up");
});
afterEach(() => host.close());

/** The program on a host of its own; `seen` is what it has written to stderr. */
function start(...args: string[]): { child: ChildProcess; seen: () => string; ended: Promise<unknown> } {
  const program = [process.execPath, join(root, "examples/run/run.ts"), ...args];
  const [file, ...rest] = commandIn(host, program);
  const child = spawn(file!, rest, { cwd: root, env: { ...process.env, CNI_PATH: distBin } });
  let text = "";
  child.stderr.on("data", (data) => (text += data));
  child.stdout.on("data", (data) => (text += data));
  return {
    child,
    seen: () => text,
    ended: new Promise((resolve) => child.on("exit", (code) => resolve(code))),
  };
}

async function until(what: () => boolean): Promise<void> {
  for (const deadline = Date.now() + 20_000; !what(); ) {
    if (Date.now() > deadline) throw new Error("not within 20 s");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** What a container leaves on the host, in files, in rules. */
const left = () => ({
  veths: ip(host, "link", "show", "type", "veth"),
  namespaces: readdirSync("/run/netns").filter((name) => name.startsWith("run-")),
  leases: readdirSync("/var/lib/cni/networks/run").filter((name) => /^(10|fd)/.test(name)),
  results: readdirSync("/var/lib/cni/results").filter((name) => name.includes("run-")),
  rules: run(...commandIn(host, ["iptables-save"]))
    .split("\n")
    .filter((line) => line.includes("run-")),
});
const nothing = { veths: [], namespaces: [], leases: [], results: [], rules: [] };

/** Sends the program's own status on; a server that answers every connection with a line. */
const server = `require("node:net").createServer((s) => s.end("hello\\n")).listen(8000, "0.0.0.0")`;

test("the command's ports are reached, its exit status is ours, and nothing is left", async () => {
  const { child, seen, ended } = start("-p", "8088:8000", "--", process.execPath, "-e", server);
  await until(() => seen().includes("port 8088"));
  expect(seen()).toMatch(/eth0: 10\.77\.\d+\.\d+\/16 fd77:77::/);
  const address = /10\.77\.\d+\.\d+/.exec(seen())![0];
  await until(() => Bun.spawnSync(commandIn(host, ["ping", "-c1", "-W1", address])).exitCode === 0);
  const ask = `require("node:net").connect(8088, "127.0.0.1").on("data", (d) => console.log(String(d))).on("error", () => process.exit(1))`;
  await until(() =>
    Bun.spawnSync(commandIn(host, [process.execPath, "-e", ask]))
      .stdout.toString()
      .includes("hello"),
  );
  child.kill("SIGINT");
  expect(await ended).toBe(130);
  expect(left()).toEqual(nothing);
});

test("a command that ends by itself, and one that can't be started", async () => {
  const fine = start("--", "sh", "-c", "ip -o addr show dev eth0; exit 7");
  expect(await fine.ended).toBe(7);
  expect(fine.seen()).toContain("inet 10.77.");
  expect(await start("--", "/nonexistent").ended).not.toBe(0);
  expect(left()).toEqual(nothing);
});

test("wrong ports and no command are said", async () => {
  const wrong = start("-p", "80", "--", "true");
  expect(await wrong.ended).toBe(1);
  expect(wrong.seen()).toContain("-p 80: not HOST:CONTAINER");
  expect(await start().ended).toBe(2);
});
