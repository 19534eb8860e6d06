import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Conf, makeNode, run, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";

let node: TestNode;
let disk: string;
beforeEach(() => {
  node = makeNode();
  disk = join(node.dataDir, "disk");
  mkdirSync(disk);
});
afterEach(() => {
  run("umount", "-l", disk);
  node.close();
});

const mountDisk = (options: string) => run("mount", "-t", "tmpfs", "-o", options, "none", disk);

function confOnDisk(): Conf {
  const conf = node.bridgeConf();
  return { ...conf, ipam: { ...conf.ipam, dataDir: disk } };
}

/** The kernel's state and every address file; the network's folder and its lock may stay. */
function traces() {
  const { files, ...kernel } = node.state();
  const leases = Object.keys(files).filter((path) => /[/][0-9a-f]+[.:][^/]*$/.test(path));
  return { kernel, leases };
}

async function expectRefused(conf: Conf, message: RegExp): Promise<void> {
  await node.ok("ADD", node.bridgeConf({ name: "elsewhere" }), { netns: node.container(), id: "other" });
  const before = traces();
  const error = await node.error("ADD", conf, { netns: node.container() });
  expect(`${error.msg}; ${error.details ?? ""}`).toMatch(message);
  expect(error.code).toBe(5);
  expect(traces()).toEqual(before);
}

test("a full disk: a clear error, and nothing is left", async () => {
  mountDisk("size=16k");
  writeFileSync(join(disk, "filler"), new Uint8Array(16384));
  await expectRefused(confOnDisk(), /no space left on device/);
});

test("no inodes left", async () => {
  mountDisk("nr_inodes=3");
  await expectRefused(confOnDisk(), /no space left on device/);
});

test("a read-only data folder", async () => {
  mountDisk("ro");
  await expectRefused(confOnDisk(), /read-only file system/);
  const conf = confOnDisk();
  expect(await node.error("STATUS", conf)).toMatchObject({ code: 50 });
});

test("read-only after the ADD: DEL says so and still removes the link; later it finishes", async () => {
  mountDisk("size=1m");
  const conf = confOnDisk();
  const c = node.container();
  await node.ok("ADD", conf, { netns: c });
  run("mount", "--options-mode=ignore", "-o", "remount,ro", disk);
  const error = await node.error("DEL", conf, { netns: c });
  expect(error.msg).toContain("read-only file system");
  expect(node.veths()).toEqual([]);
  run("mount", "--options-mode=ignore", "-o", "remount,rw", disk);
  await node.ok("DEL", conf, { netns: c });
});
