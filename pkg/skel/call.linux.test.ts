import { specVersions } from "@tscni/types";
import { describe, expect, test } from "vitest";
import { conf, errorOf, run } from "./testing.ts";

describe("wrong values in the config", () => {
  test.each(["ADD", "CHECK", "STATUS"])("%s refuses them", async (verb) => {
    expect(await errorOf(verb, { stdin: conf("1.1.0", { mtu: "big" }) })).toEqual({
      cniVersion: "1.1.0",
      code: 6,
      msg: 'mtu: "big" is not a number',
    });
  });

  test.each(["DEL", "GC"])("%s warns of them and goes on without", async (verb) => {
    const { status, stdout, stderr, seen } = await run(verb, {
      stdin: conf("1.1.0", { mtu: "big", dataDir: "/d", dns: [], capabilities: 3 }),
    });
    expect({ status, stdout }).toEqual({ status: [0], stdout: [] });
    expect(seen).toMatchObject([{ call: { conf: { mtu: 0, dataDir: "/d" } } }]);
    expect(stderr.trimEnd().split("\n").sort()).toEqual([
      "probe: ignoring capabilities: 3 is not an object",
      "probe: ignoring dns: [] is not an object",
      'probe: ignoring mtu: "big" is not a number',
    ]);
  });

  test.each(["DEL", "GC"])("%s refuses one in a key that it needs", async (verb) => {
    const stdin = conf("1.1.0", { dataDir: 3 });
    expect(await errorOf(verb, { stdin })).toMatchObject({ code: 6, msg: "dataDir: 3 is not a string" });
  });
});

describe("prevResult", () => {
  const prevResult = { ips: [{ address: "10.1.0.2/16" }] };

  test("arrives decoded, under any spelling", async () => {
    for (const key of ["prevResult", "PrevResult", "prevresult"]) {
      const { seen } = await run("CHECK", { stdin: conf("1.0.0", { [key]: prevResult }) });
      expect(seen[0]!.call.prevResult).toMatchObject({ ips: [{ address: "10.1.0.2/16" }] });
    }
    for (const stdin of [conf("1.0.0"), conf("1.0.0", { prevResult: null })])
      expect((await run("CHECK", { stdin })).seen[0]!.call.prevResult).toBeUndefined();
  });

  const wrong: unknown[] = [
    3,
    "x",
    [],
    { ips: 3 },
    { ips: [{ address: "10.1.0.300/16" }] },
    { cniVersion: "0.2.0" },
  ];
  test.each(wrong)("%j fails ADD and CHECK; DEL and GC do without it", async (value) => {
    const stdin = conf("1.1.0", { prevResult: value });
    for (const verb of ["ADD", "CHECK"])
      expect(await errorOf(verb, { stdin })).toMatchObject({
        code: 6,
        msg: expect.stringContaining("prevResult"),
      });
    for (const verb of ["DEL", "GC"]) {
      const { seen, stderr, status } = await run(verb, { stdin });
      expect(status).toEqual([0]);
      expect(seen[0]!.call.prevResult).toBeUndefined();
      expect(stderr).toMatch(/^probe: ignoring prevResult: .*\n$/);
    }
  });

  test.each(specVersions)("may be of any version that shares the shape of %s", async (version) => {
    const families = [specVersions.slice(0, 2), specVersions.slice(2, 5), specVersions.slice(5)];
    for (const other of specVersions) {
      const alike = families.some((family) => family.includes(version) && family.includes(other));
      const { status } = await run("ADD", { stdin: conf(version, { prevResult: { cniVersion: other } }) });
      expect(status, other).toEqual([alike ? 0 : 1]);
    }
  });
});

describe("the valid attachments of GC", () => {
  const validOf = async (more: object) =>
    (await run("GC", { stdin: conf("1.1.0", more) })).seen[0]!.call.validAttachments;
  const one = { containerID: "c1", ifname: "eth0" };

  test("absent: nobody said", async () => {
    expect(await validOf({})).toBeUndefined();
  });

  test.each(["cni.dev/valid-attachments", "cni.dev/attachments", "CNI.dev/Valid-Attachments"])(
    "%s",
    async (key) => {
      expect(await validOf({ [key]: [] }), "none").toEqual([]);
      expect(await validOf({ [key]: null }), "none, as libcni writes it").toEqual([]);
      expect(await validOf({ [key]: [one, { ContainerId: "c2", IfName: "net1", more: 1 }] })).toEqual([
        one,
        { containerID: "c2", ifname: "net1" },
      ]);
    },
  );

  test("the spec's key wins over the older one", async () => {
    expect(await validOf({ "cni.dev/attachments": [], "cni.dev/valid-attachments": [one] })).toEqual([one]);
  });

  test.each([
    {},
    "c1",
    3,
    true,
    [null],
    ["c1"],
    [{}],
    [{ containerID: "c1" }],
    [{ containerID: 1, ifname: "eth0" }],
    [one, [one]],
  ])("%j is refused before anything is removed", async (value) => {
    for (const key of ["cni.dev/valid-attachments", "cni.dev/attachments"])
      expect(await errorOf("GC", { stdin: conf("1.1.0", { [key]: value }) })).toMatchObject({
        code: 6,
        msg: expect.stringContaining(key),
      });
  });

  test("are for GC alone", async () => {
    const { seen } = await run("DEL", { stdin: conf("1.1.0", { "cni.dev/valid-attachments": [] }) });
    expect(seen[0]!.call.validAttachments).toBeUndefined();
  });
});

test("a verb's warning goes to stderr under the plugin's name", async () => {
  const { stderr } = await run("STATUS", { plugin: { status: (call) => call.warn("the pool is small") } });
  expect(stderr).toBe("probe: the pool is small\n");
});
