import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stat } from "@tscni/sys";
import { expect, test } from "vitest";
import { isSharedDevice, releaseWrittenBefore } from "./boot.ts";
import { Store } from "./store.ts";
import { ownProcess, TestNetwork } from "./testing.ts";

const reservation = (net: TestNetwork, ip: string, seconds: number) => {
  mkdirSync(net.dir, { recursive: true });
  writeFileSync(join(net.dir, ip), "gone\r\neth0");
  utimesSync(join(net.dir, ip), seconds, seconds);
};

test("only regular files older than the time go", () => {
  using net = new TestNetwork();
  reservation(net, "10.1.0.2", 999);
  reservation(net, "10.1.0.3", 1000);
  reservation(net, "10.1.0.4", 1001);
  reservation(net, "last_reserved_ip.0", 1);
  mkdirSync(join(net.dir, "10.1.0.5"));
  utimesSync(join(net.dir, "10.1.0.5"), 1, 1);
  const store = Store.open(net.dir, false);
  try {
    expect(releaseWrittenBefore(store, 1000n * 1_000_000_000n)).toEqual(["10.1.0.2"]);
  } finally {
    store.close();
  }
  expect(net.addresses()).toEqual(["10.1.0.3", "10.1.0.4", "10.1.0.5"]);
});

const oldTime = 1_000_000_000;

test("a time namespace, where the boot is not when it seems, keeps everything", async (t) => {
  const inTime = ["unshare", "--time", "--fork", "--boottime", "100000", "--"];
  if (Bun.spawnSync([...inTime, "true"]).exitCode !== 0) t.skip("no time namespaces here");
  using net = new TestNetwork();
  reservation(net, "10.1.0.2", oldTime);
  const added = await net.run(inTime.concat(ownProcess), "ADD", { id: "a" });
  expect(added).toMatchObject({ status: 0, stderr: "" });
  expect(net.addresses()).toEqual(["10.1.0.2", "10.1.0.3"]);
});

test("a later boot releases again what is older than itself", async () => {
  using net = new TestNetwork();
  await net.call("ADD", { id: "a" });
  reservation(net, "10.1.0.9", oldTime);
  expect((await net.call("ADD", { id: "b" })).warnings).toEqual([]);
  // As if the last sweep had been in another boot.
  const index = join(net.dir, ".tscni-index");
  writeFileSync(index, net.files(true)[".tscni-index"]!.replace(/[0-9a-f-]{36}/, "another-boot"));
  const { warnings, ips } = await net.call("ADD", { id: "c" });
  expect(warnings).toEqual(["released 1 addresses reserved before the last boot: 10.1.0.9"]);
  expect(ips).toEqual(["10.1.0.4/24"]);
  expect(net.addresses()).toEqual(["10.1.0.2", "10.1.0.3", "10.1.0.4"]);
});

test("an ADD that fails has swept the boot all the same, so a full pool gets its old addresses back", async () => {
  using net = new TestNetwork({ subnet: "10.1.0.0/30" });
  reservation(net, "10.1.0.2", oldTime);
  expect((await net.call("ADD", { args: "IP=10.77.0.1" })).error?.code).toBe(7);
  expect(net.addresses()).toEqual([]);
  expect((await net.call("ADD")).ips).toEqual(["10.1.0.2/30"]);
});

test("network file systems are told by mountinfo", () => {
  const mountinfo = [
    "22 27 0:21 / /proc rw,nosuid shared:12 - proc proc rw",
    "30 27 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw",
    "99 30 0:55 / /srv rw,relatime shared:40 - nfs4 server:/x rw,vers=4.2",
    "98 30 0:56 / /srv2 rw - fuse.sshfs a: rw",
  ].join("\n");
  expect(isSharedDevice(mountinfo, (254n << 32n) | 1n)).toBe(false);
  expect(isSharedDevice(mountinfo, 55n)).toBe(true);
  expect(isSharedDevice(mountinfo, 56n)).toBe(true);
  expect(isSharedDevice(mountinfo, stat("/proc").dev)).toBe(false);
});
