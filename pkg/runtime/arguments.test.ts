import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { prints } from "../libcni/testing/lab.ts";
import { failureOf, NetworkingLab, resultOf } from "./testing.ts";

let lab: NetworkingLab;
beforeEach(() => {
  lab = new NetworkingLab();
});
afterEach(() => lab.close());

const conf = (name: string) => JSON.stringify({ cniVersion: "1.1.0", name, plugins: [{ type: "x" }] });

test("networks that no container could be attached to are not loaded", () => {
  const load = (...names: string[]) => lab.networking().load(...names.map((name) => ({ list: conf(name) })));
  expect(load("a", "b").map(({ ifName }) => ifName)).toEqual(["eth0", "eth1"]);
  expect(() => load("a b")).toThrow("invalid characters found in network name");
  expect(() =>
    lab.networking({ interfacePrefix: "far-too-long-a-prefix" }).load({ list: conf("a") }),
  ).toThrow("interface name is too long");
  writeFileSync(join(lab.configDir, "x.conflist"), conf("x"));
  expect(() => lab.networking().load({ list: conf("a") }, "directory")).toThrow(
    /x\.conflist: its interface would be eth0, as that of network "a" is/,
  );
});

test("options that are undefined are the defaults", () => {
  const undef = { configDir: undefined as unknown as string };
  const { configDir } = lab.networking(undef).config;
  expect(configDir).toBe(lab.networking({ ...undef, configDir: configDir! }).config.configDir);
  expect(configDir).toMatch(/cni/);
});

describe.skipIf(process.platform === "win32")("arguments", () => {
  test("an id that is none does nothing, above all no delete", async () => {
    const both = lab.twoNetworks();
    await both.setup("c", "/netns");
    lab.calls();
    for (const id of ["", "a/b", "-x", undefined as unknown as string]) {
      const calls = [both.setup(id, "/n"), both.remove(id), both.check(id, "/n"), both.gc([id])];
      for (const call of calls) expect((await failureOf(call)).code).toBe("invalid-argument");
    }
    expect((await failureOf(both.gc([{ id: "", ifNames: [] }]))).code).toBe("invalid-argument");
    expect(() => both.attachments("")).toThrow("container id");
    expect(lab.calls()).toEqual([]);
    expect(both.attachments().attachments).toHaveLength(2);
  });

  test("a namespace is needed where there is one", async () => {
    const both = lab.twoNetworks();
    expect((await failureOf(both.setup("c", ""))).code).toBe("invalid-argument");
    expect((await failureOf(both.check("c", ""))).code).toBe("invalid-argument");
  });

  test("labels can't smuggle in others", async () => {
    const both = lab.twoNetworks();
    for (const labels of [{ A: "1;B=2" }, { A: "b=c" }, { "A;B": "1" }, { "": "1" }, { A: "\0" }]) {
      const error = await failureOf(both.setup("c", "/n", { labels }));
      expect(error.code).toBe("invalid-argument");
      expect(error.message).toContain(JSON.stringify(Object.values(labels)[0]));
    }
    expect(lab.calls()).toEqual([]);
  });

  test("every capability reaches a plugin that declares it, and no other", async () => {
    const names = ["ips", "mac", "deviceID", "infinibandGUID", "aliases", "cgroupPath", "dns"];
    const capabilities = Object.fromEntries(names.map((name) => [name, true]));
    lab.plugin("alpha", { ADD: prints(resultOf("eth0", "10.1.0.2/24")) });
    lab.conflist("a", "alpha", { capabilities });
    const one = lab.networking();
    one.load("directory");
    const given = {
      ips: ["10.0.0.7/24"],
      mac: "02:00:00:00:00:07",
      deviceID: "0000:00:1f.6",
      infinibandGUID: "c2:11:22:33:44:55:66:77",
      aliases: { a: ["web"] },
      cgroupPath: "/pods/c",
      dns: { servers: ["10.0.0.53"] },
    };
    await one.setup("c", "/n", { ...given, bandwidth: { egressRate: 1 } });
    expect(lab.calls()[0]!.stdin.runtimeConfig).toEqual(given);
  });
});
