import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openNetfilter } from "@tscni/netlink";
import { inside, makeNamespace, type TestNamespace } from "@tscni/test-support";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { IptablesError, mayHaveChain, onBackend, readTable, runChanges, TableChange } from "./index.ts";
import { variantFolder, variants } from "./testing.ts";

const path = process.env.PATH;
afterAll(() => {
  process.env.PATH = path;
});

let host: TestNamespace;
beforeEach(() => {
  host = makeNamespace("host");
});
afterEach(() => host.close());

const change = () => new TableChange("nat");
const run = (family: 4 | 6, what: TableChange) => runChanges([{ family, change: what }]);
const comment = ["-m", "comment", "--comment", `name: "n" id: "c 1\\"`];
const failure = (work: () => unknown): IptablesError => {
  try {
    inside(host, work);
  } catch (error) {
    if (error instanceof IptablesError) return error;
    throw error;
  }
  throw new Error("no failure");
};

/** Has iptables-restore be a script from now on. */
const fake = (script: string) => {
  const folder = mkdtempSync(join(tmpdir(), "tscni-ipt-"));
  writeFileSync(join(folder, "iptables-restore"), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, "iptables-restore"), 0o755);
  process.env.PATH = `${folder}:${path}`;
};

describe.each(variants)("iptables-%s", (variant) => {
  beforeAll(() => {
    process.env.PATH = `${variantFolder(variant)}:${path}`;
  });

  test.each([4, 6] as const)("family %i: what was written is read back, and deleted again", (family) => {
    const address = family === 4 ? "10.1.0.5" : "fd00::5";
    const rules = [
      ["-s", address, "-j", "CNI-x", ...comment],
      ["!", "-d", family === 4 ? "224.0.0.0/4" : "ff00::/8", "-j", "MASQUERADE", ...comment],
    ] as const;
    inside(host, () => {
      expect(readTable(family, "nat").has("CNI-x")).toBe(false);
      run(family, change().createChain("CNI-x").append("CNI-x", rules[1]).append("POSTROUTING", rules[0]));
      const table = readTable(family, "nat");
      expect(table.hasRule("POSTROUTING", rules[0])).toBe(true);
      expect(table.hasRule("CNI-x", rules[1])).toBe(true);
      expect(table.references("CNI-x")).toHaveLength(1);
      run(family, change().delete("POSTROUTING", rules[0]).flush("CNI-x").removeChain("CNI-x"));
      expect(readTable(family, "nat").has("CNI-x")).toBe(false);
      expect(readTable(family, "nat").rules("POSTROUTING")).toEqual([]);
    });
  });

  test("a transaction is done whole or not at all", () => {
    inside(host, () => run(4, change().createChain("CNI-x").append("POSTROUTING", ["-j", "CNI-x"])));
    const before = host.run("iptables-save", "-t", "nat").replaceAll(/^#.*\n/gm, "");
    for (const bad of [
      change().append("POSTROUTING", ["-j", "ACCEPT"]).createChain("CNI-x"),
      change().append("POSTROUTING", ["-j", "ACCEPT"]).delete("POSTROUTING", ["-j", "RETURN"]),
      change().append("POSTROUTING", ["-j", "ACCEPT"]).flush("CNI-y"),
      change().append("POSTROUTING", ["-j", "ACCEPT"]).flush("CNI-x").removeChain("CNI-x"),
      change().append("POSTROUTING", ["-j", "ACCEPT"]).append("POSTROUTING", ["-j", "nonesuch"]),
    ]) {
      expect(failure(() => run(4, bad))).toMatchObject({ problem: "failed", unusable: false });
      expect(host.run("iptables-save", "-t", "nat").replaceAll(/^#.*\n/gm, "")).toBe(before);
    }
    inside(host, () => run(4, change().emptyChain("CNI-x").append("CNI-x", ["-j", "RETURN"])));
    inside(host, () => run(4, change().emptyChain("CNI-x").append("CNI-x", ["-j", "ACCEPT"])));
    expect(inside(host, () => readTable(4, "nat")).rules("CNI-x")).toEqual([["-j", "ACCEPT"]]);
  });

  test.each([4, 6] as const)("family %i: a look tells whether a chain may be there", (family) => {
    const seen = (chain: string) => {
      using netfilter = openNetfilter();
      return mayHaveChain(netfilter, family, "nat", chain);
    };
    inside(host, () => {
      expect(seen("CNI-x")).toBe(false);
      run(family, change().createChain("CNI-x"));
      process.env.PATH = "/nonesuch";
      expect(seen("CNI-x")).toBe(true);
      // A table of iptables-legacy may have any.
      expect(seen("CNI-y")).toBe(variant === "legacy");
    });
    process.env.PATH = `${variantFolder(variant)}:${path}`;
  });

  test("nothing to do starts nothing", () => {
    fake("exit 1");
    inside(host, () => run(4, change()));
    process.env.PATH = `${variantFolder(variant)}:${path}`;
  });
});

describe("what can't work says why", () => {
  const make = () => run(4, change().createChain("CNI-x"));

  test.each([
    ["echo 'iptables-restore: line 2 failed' >&2; exit 1", "failed", /iptables-restore: .*line 2 failed/],
    [
      "echo 'iptables-restore v1.8.9 (nf_tables): unknown option \"--x\"' >&2; exit 2",
      "failed",
      /^iptables-restore: unknown option "--x"/,
    ],
    ["kill -9 $$", "failed", /ended by signal 9/],
    [
      "echo \"can't initialize iptables table \\`nat': Table does not exist\" >&2; exit 3",
      "unusable",
      /ip_tables/,
    ],
    ["echo 'Another app is currently holding the xtables lock.' >&2; exit 4", "locked", /holds the lock/],
  ] as const)("%s", (script, problem, message) => {
    fake(script);
    const error = failure(make);
    expect(error.problem).toBe(problem);
    expect(error.msg).toMatch(message);
  });

  test("the backend is iptables unless that is unusable", () => {
    const works = { iptables: () => make(), nftables: () => "nft" };
    fake("exit 0");
    expect(onBackend(undefined, works)).toMatchObject({ backend: "iptables" });
    fake("echo 'Permission denied (you must be root)' >&2; exit 4");
    expect(onBackend(undefined, works)).toEqual({ backend: "nftables", result: "nft" });
    expect(() => onBackend("iptables", works)).toThrow(/Permission denied/);
    fake("echo 'no such rule' >&2; exit 1");
    expect(() => onBackend(undefined, works)).toThrow(/no such rule/);
  });
});

test.runIf(variants.includes("legacy"))("who holds the lock is named", async () => {
  process.env.PATH = `${variantFolder("legacy")}:${path}`;
  const { lockHolder } = await import("./lock.linux.ts");
  const holder = Bun.spawn(["flock", "/run/xtables.lock", "sleep", "5"]);
  while (lockHolder() === undefined) await Bun.sleep(10);
  expect(lockHolder()).toMatch(/^(flock|sleep) \(pid \d+\)$/);
  holder.kill();
});
