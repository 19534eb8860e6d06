import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { goBin } from "@tscni/test-support";
import { expect, test } from "vitest";
import { type CallOptions, ownProcess, TestNetwork } from "./testing.ts";

/* The Go plugin on the same input and the same folders: either must be able to follow the other. */

const dual = {
  ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "fd00:9::/64" }]],
  routes: [{ dst: "::/0" }],
};

test("the same calls give the same results, errors and folders", { timeout: 120_000 }, async (t) => {
  const go = [goBin("host-local", t)];
  const steps: [string, CallOptions][] = [
    ["ADD", { id: "a", ipam: dual }],
    ["ADD", { id: "a", ipam: dual }],
    ["CHECK", { id: "a", ipam: dual }],
    ["CHECK", { id: "nobody", ipam: dual }],
    ["ADD", { id: "b", ipam: dual, args: "IP=10.1.0.9" }],
    ["ADD", { id: "c", ipam: dual, args: "IP=10.1.0.9" }],
    ["ADD", { id: "c", ipam: dual, args: "IP=10.1.0.1" }],
    ["ADD", { id: "c", ipam: dual, args: "IP=10.77.0.1" }],
    ["ADD", { id: "c", ipam: dual, args: "IP=10.1.0.9=" }],
    ["ADD", { id: "c", ipam: dual, conf: { runtimeConfig: { ips: ["10.1.0.20/24", "fd00:9::20"] } } }],
    ["ADD", { id: "d", ipam: dual, conf: { args: { cni: { ips: ["fd00:9::21"] } } } }],
    ["ADD", { id: "e", ipam: dual, version: "0.2.0" }],
    ["ADD", { id: "f", ipam: dual, version: "0.4.0", ifName: "eth1" }],
    ["DEL", { id: "b", ipam: dual }],
    ["DEL", { id: "b", ipam: dual }],
    ["DEL", { id: "f", ipam: dual }],
    ["ADD", { id: "g", ipam: { subnet: "10.2.0.0/30" } }],
    ["ADD", { id: "h", ipam: { subnet: "10.2.0.0/30" } }],
    ["ADD", { id: "h", ipam: { subnet: "10.2.0.0/31" } }],
    ["ADD", { id: "h", ipam: { subnet: "10.2.0.1/30" } }],
    ["ADD", { id: "h", ipam: { subnet: "10.2.0.0/24", rangeStart: "10.3.0.1" } }],
    ["ADD", { id: "h", ipam: { subnet: "10.2.0.0/24", rangeStart: "10.2.0.9", rangeEnd: "10.2.0.8" } }],
    ["ADD", { id: "h", ipam: { subnet: "10.2.0.0/24", rangeEnd: "fd00::1" } }],
    ["ADD", { id: "h", ipam: { ranges: [[{ subnet: "10.2.0.0/24" }, { subnet: "fd00::/64" }]] } }],
    ["ADD", { id: "h", ipam: { ranges: [[{ subnet: "10.2.0.0/24" }], [{ subnet: "10.2.0.0/25" }]] } }],
    ["ADD", { id: "h", ipam: { ranges: [[]] } }],
    ["ADD", { id: "h", ipam: { ranges: [] } }],
    [
      "ADD",
      {
        id: "h",
        version: "0.2.0",
        ipam: { ranges: [[{ subnet: "10.5.0.0/24" }], [{ subnet: "10.6.0.0/24" }]] },
      },
    ],
    ["ADD", { id: "h", ipam: {}, conf: { runtimeConfig: { ipRanges: [[{ subnet: "10.7.0.0/24" }]] } } }],
    ["ADD", { id: "i", ipam: { ranges: [[{ subnet: "fd00:A::/120", gateway: "FD00:a::4" }]] } }],
    [
      "ADD",
      {
        id: "j",
        ipam: { subnet: "10.8.0.0/24", rangeStart: "10.8.0.5", rangeEnd: "10.8.0.5", gateway: "10.8.0.5" },
      },
    ],
  ];
  using theirs = new TestNetwork();
  using ours = new TestNetwork();
  for (const [command, options] of steps) {
    const expected = await theirs.run(go, command, options);
    const actual = await ours.run(ownProcess, command, options);
    const say = `${command} ${JSON.stringify(options)}`;
    expect({ say, status: actual.status, ...(actual.status === expected.status ? {} : actual) }).toEqual({
      say,
      status: expected.status,
    });
    if (expected.status === 0) expect({ say, out: actual.stdout }).toEqual({ say, out: expected.stdout });
    else expect({ say, msg: actual.json.msg }).toEqual({ say, msg: expected.json.msg });
    // Go counts the round robin on for what it allocates and then takes back; we have not allocated yet.
    if (expected.status !== 0)
      for (const [name, text] of Object.entries(ours.files()))
        if (name.startsWith("last_reserved_ip.")) writeFileSync(join(theirs.dir, name), text);
    expect({ say, files: ours.files() }).toEqual({ say, files: theirs.files() });
  }
  const mode = (net: TestNetwork, name: string) => statSync(join(net.dir, name)).mode;
  for (const name of [".", "lock", "fd00:9::2", "last_reserved_ip.0"])
    expect(mode(ours, name)).toBe(mode(theirs, name));
});

test("what Go adds we check, avoid and delete; and the reverse", { timeout: 60_000 }, async (t) => {
  const go = [goBin("host-local", t)];
  using net = new TestNetwork(dual);
  await net.run(go, "ADD", { id: "go" });
  expect((await net.call("CHECK", { id: "go" })).error).toBeUndefined();
  expect((await net.call("ADD", { id: "go" })).error?.msg).toContain("10.1.0.2 has been allocated to go");
  expect((await net.call("ADD", { id: "ours" })).ips).toEqual(["10.1.0.3/24", "fd00:9::3/64"]);
  expect((await net.run(go, "CHECK", { id: "ours" })).status).toBe(0);
  expect((await net.run(go, "ADD", { id: "ours" })).json.msg).toContain(
    "10.1.0.3 has been allocated to ours",
  );
  await net.run(go, "ADD", { id: "go2" });
  await net.call("DEL", { id: "go" });
  expect((await net.run(go, "DEL", { id: "ours" })).status).toBe(0);
  expect(net.addresses()).toEqual(["10.1.0.4", "fd00:9::4"]);
  expect((await net.call("CHECK", { id: "ours" })).error?.code).toBe(999);
  expect((await net.call("ADD", { id: "ours" })).ips).toEqual(["10.1.0.5/24", "fd00:9::5/64"]);
});

test("our own files mean nothing to Go, not even those of a kill", { timeout: 60_000 }, async (t) => {
  const go = [goBin("host-local", t)];
  using net = new TestNetwork({ ...dual, cooldown: 600 });
  await net.call("ADD", { id: "a" });
  await net.call("DEL", { id: "a" });
  await net.call("ADD", { id: "b" });
  writeFileSync(join(net.dir, ".tscni-new"), "c\r\neth0");
  const own = () => Object.entries(net.files(true)).filter(([name]) => name.startsWith(".tscni-"));
  const before = own();
  expect(before.map(([name]) => name)).toEqual([".tscni-cooling", ".tscni-index", ".tscni-new"]);
  expect((await net.run(go, "ADD", { id: "c" })).status).toBe(0);
  expect((await net.run(go, "DEL", { id: "b" })).status).toBe(0);
  expect(own()).toEqual(before);
  expect((await net.run(go, "DEL", { id: "c" })).status).toBe(0);
  expect(net.addresses()).toEqual([]);
});

test("both at once, 16 each: distinct addresses, no error, all released", { timeout: 120_000 }, async (t) => {
  const go = [goBin("host-local", t)];
  using net = new TestNetwork(dual);
  const each = (command: string) =>
    Promise.all(
      Array.from({ length: 32 }, (_, i) => net.run(i % 2 ? go : ownProcess, command, { id: `c${i}` })),
    );
  const added = await each("ADD");
  expect(added.filter((r) => r.status !== 0)).toEqual([]);
  const ips = added.flatMap((r) => r.json.ips.map((ip: { address: string }) => ip.address));
  expect(new Set(ips).size).toBe(64);
  expect(net.addresses()).toHaveLength(64);
  expect((await each("CHECK")).filter((r) => r.status !== 0)).toEqual([]);
  expect((await each("DEL")).filter((r) => r.status !== 0)).toEqual([]);
  expect(net.addresses()).toEqual([]);
});

test("reservations that Go made in this boot survive our first ADD of it", { timeout: 60_000 }, async (t) => {
  const go = [goBin("host-local", t)];
  using net = new TestNetwork(dual);
  await net.run(go, "ADD", { id: "go" });
  expect((await net.call("ADD", { id: "ours" })).warnings).toEqual([]);
  rmSync(join(net.dir, ".tscni-index"));
  await net.call("ADD", { id: "ours2" });
  expect((await net.run(go, "CHECK", { id: "go" })).status).toBe(0);
  mkdirSync(join(net.dir, "other"));
  expect((await net.call("ADD", { id: "ours3" })).error).toBeUndefined();
});
