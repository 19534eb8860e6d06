import { linkSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run, temporaryFolder } from "@tscni/test-support";
import { afterEach, expect, test } from "vitest";
import { Store } from "./store.ts";
import { ownProcess, TestNetwork } from "./testing.ts";

const dual = { ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "fd00:9::/64" }]] };
const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** A small file system of its own. */
function tmpfs(options: string): string {
  const folder = temporaryFolder();
  run("mount", "-t", "tmpfs", "-o", options, "tscni-test", folder.path);
  cleanups.push(() => {
    run("umount", "-l", folder.path);
    folder.remove();
  });
  return folder.path;
}

/** Fails unless every reservation is whole and the index, if it is believed, says what the files say. */
function verify(net: TestNetwork): void {
  for (const ip of net.addresses()) expect(net.files()[ip]).toMatch(/^[a-z0-9-]+\r\neth0$/);
  const store = Store.open(net.dir, false);
  try {
    const believed = store.ledger.text.split("\n").sort();
    store.forget();
    expect(believed).toEqual(store.ledger.text.split("\n").sort());
  } finally {
    store.close();
  }
}

/** Adds and deletes for ever, with ids of its own. */
const churn = `
import { TestNetwork } from "./testing.ts";
const [folder, ipam, name] = process.argv.slice(-3);
const net = new TestNetwork(JSON.parse(ipam), folder);
for (let i = 0; ; i++) {
  const { error } = await net.call("ADD", { id: name + "-" + i });
  if (error) console.log(error.message);
  if (i % 3 > 0) await net.call("DEL", { id: name + "-" + (i - (i % 2)) });
}`;

test("kill -9 at any moment: every file is whole, and DEL and GC leave nothing", {
  timeout: 120_000,
}, async () => {
  const ipam = { ...dual, cooldown: 1 };
  using net = new TestNetwork(ipam);
  for (let round = 0; round < 12; round++) {
    const children = [0, 1, 2].map((i) =>
      Bun.spawn([process.execPath, "-e", churn, net.dataDir, JSON.stringify(ipam), `r${round}-${i}`], {
        cwd: import.meta.dirname,
        stdout: "ignore",
        stderr: "inherit",
      }),
    );
    await Bun.sleep(400 + Math.random() * 100);
    for (const child of children) child.kill("SIGKILL");
    await Promise.all(children.map((child) => child.exited));
    verify(net);
    expect((await net.call("GC", { conf: { "cni.dev/valid-attachments": [] } })).error).toBeUndefined();
    expect(net.addresses()).toEqual([]);
    expect(Object.keys(net.files(true))).not.toContain(".tscni-new");
    const added = await net.call("ADD", { ipam: { ...ipam, cooldown: 0 } });
    expect(added.error).toBeUndefined();
    await net.call("DEL");
    verify(net);
  }
});

/** Runs the plugin until the nth time that it enters a system call, and kills it there. */
async function killedAt(net: TestNetwork, call: string, nth: number): Promise<boolean> {
  const inject = ["-e", `trace=${call}`, "-e", `inject=${call}:signal=SIGKILL:when=${nth}`];
  const { status } = await net.run(["strace", "-f", "-o", "/dev/null", ...inject, ...ownProcess], "ADD", {
    id: "killed",
  });
  return status !== 0;
}

test("killed at every system call that changes the folder, DEL leaves nothing", {
  timeout: 120_000,
}, async (t) => {
  if (Bun.which("strace") === null || Bun.spawnSync(["strace", "-o", "/dev/null", "true"]).exitCode !== 0)
    t.skip("strace is not here, or may not trace");
  let kills = 0;
  for (const call of ["link", "unlink", "rename", "utimensat", "flock"]) {
    for (let nth = 1; nth < 20; nth++) {
      using net = new TestNetwork(dual);
      await net.call("ADD", { id: "other" });
      const before = Object.keys(net.files(true));
      if (!(await killedAt(net, call, nth))) break;
      kills++;
      const say = `${call} ${nth}`;
      for (const ip of net.addresses()) expect({ say, text: net.files()[ip] }).not.toEqual({ say, text: "" });
      expect((await net.call("DEL", { id: "killed" })).error).toBeUndefined();
      expect({ say, files: Object.keys(net.files(true)) }).toEqual({ say, files: before });
      verify(net);
    }
  }
  expect(kills).toBeGreaterThanOrEqual(6);
});

test("killed between link and unlink: the reservation's second name is never written to", async () => {
  using net = new TestNetwork(dual);
  await net.call("ADD", { id: "killed" });
  linkSync(join(net.dir, "10.1.0.2"), join(net.dir, ".tscni-new"));
  await net.call("DEL", { id: "nobody" });
  expect(Object.keys(net.files(true))).not.toContain(".tscni-new");
  linkSync(join(net.dir, "10.1.0.2"), join(net.dir, ".tscni-new"));
  await net.call("ADD", { id: "next" });
  expect(readFileSync(join(net.dir, "10.1.0.2"), "utf8")).toBe("killed\r\neth0");
  await net.call("DEL", { id: "killed" });
  await net.call("DEL", { id: "next" });
  expect(net.addresses()).toEqual([]);
  verify(net);
});

test("killed after the first of two addresses: DEL takes it back", async () => {
  using net = new TestNetwork(dual);
  await net.call("ADD", { id: "other" });
  writeFileSync(join(net.dir, "10.1.0.3"), "killed\r\neth0");
  await net.call("DEL", { id: "killed" });
  expect(net.addresses()).toEqual(["10.1.0.2", "fd00:9::2"]);
});

test("64 processes at once: distinct addresses, no error, nothing left", { timeout: 120_000 }, async () => {
  using net = new TestNetwork(dual);
  const each = (command: string) =>
    Promise.all(Array.from({ length: 64 }, (_, i) => net.run(ownProcess, command, { id: `c${i}` })));
  const added = await each("ADD");
  expect(added.filter((r) => r.status !== 0)).toEqual([]);
  const ips = added.flatMap((r) => r.json.ips.map((ip: { address: string }) => ip.address));
  expect(new Set(ips).size).toBe(128);
  verify(net);
  expect((await each("DEL")).filter((r) => r.status !== 0)).toEqual([]);
  expect(net.addresses()).toEqual([]);
});

test.each([
  ["inodes", (n: number) => `nr_inodes=${n + 1},size=1m`, 8],
  ["pages", (n: number) => `size=${4 * n}k,nr_inodes=100`, 6],
] as const)("a disk that has %s left for one step fewer each time", async (_, options, steps) => {
  const outcomes: (number | undefined)[] = [];
  for (let n = 1; n <= steps; n++) {
    const path = tmpfs(options(n));
    using net = new TestNetwork(dual, path);
    const { error } = await net.call("ADD", { id: "a" });
    outcomes.push(error?.code);
    if (error) {
      expect(error.msg).toMatch(/^cannot use the data folder "[^"]+": .*: no space left on device$/);
      const folder = await net.call("CHECK", { id: "a" });
      expect(folder.error).toBeDefined();
      run("mount", "--options-mode=ignore", "-o", "remount,size=1m,nr_inodes=1000", path);
      await net.call("DEL", { id: "never" });
      expect(Object.keys(await leftIn(net))).toEqual([]);
      expect((await net.call("ADD", { id: "a" })).error).toBeUndefined();
    }
    verify(net);
    expect((await net.call("DEL", { id: "a" })).error).toBeUndefined();
    expect(net.addresses()).toEqual([]);
  }
  expect(outcomes.filter((code) => code === 5).length).toBeGreaterThanOrEqual(3);
  expect(outcomes.at(-1)).toBeUndefined();
  expect(new Set(outcomes)).toEqual(new Set([5, undefined]));
});

/** What a failed ADD has left beside the lock and the round-robin marks. */
async function leftIn(net: TestNetwork): Promise<Record<string, string>> {
  try {
    return Object.fromEntries(
      Object.entries(net.files(true)).filter(
        ([name]) => !/^(lock|last_reserved_ip\..|\.tscni-index)$/.test(name),
      ),
    );
  } catch {
    return {};
  }
}

test("a full disk does not keep addresses in use", async () => {
  const path = tmpfs("size=1m,nr_inodes=1000");
  using net = new TestNetwork({ ...dual, cooldown: 60 }, path);
  await net.call("ADD", { id: "a" });
  run("dd", "if=/dev/zero", `of=${path}/fill`, "bs=4k", "status=none", "count=200");
  try {
    run("dd", "if=/dev/zero", `of=${path}/rest`, "bs=1k", "status=none");
  } catch {
    // It ends when the disk is full.
  }
  const deleted = await net.call("DEL", { id: "a" });
  expect(deleted.error).toBeUndefined();
  expect(deleted.warnings[0]).toContain("released addresses will not cool down");
  expect(net.addresses()).toEqual([]);
});

test("a read-only data folder: code 5, STATUS 50, and DEL of what is not there succeeds", async () => {
  const path = tmpfs("size=1m,nr_inodes=1000");
  using net = new TestNetwork(dual, path);
  await net.call("ADD", { id: "a" });
  const before = net.files(true);
  run("mount", "--options-mode=ignore", "-o", "remount,ro", path);
  expect((await net.call("ADD", { id: "b" })).error).toMatchObject({ code: 5 });
  expect((await net.call("ADD", { id: "b" })).error?.msg).toContain("read-only file system");
  expect((await net.call("DEL", { id: "a" })).error).toMatchObject({ code: 5 });
  expect((await net.call("DEL", { id: "b" })).error).toBeUndefined();
  expect((await net.call("CHECK", { id: "a" })).error).toBeUndefined();
  expect((await net.call("STATUS")).error).toMatchObject({ code: 50 });
  expect(net.files(true)).toEqual(before);
  run("mount", "--options-mode=ignore", "-o", "remount,rw", path);
  await net.call("DEL", { id: "a" });
  expect(net.addresses()).toEqual([]);
});
