import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fails, prints } from "../libcni/testing/lab.ts";
import type { NetworkingEvent } from "./index.ts";
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

describe.skipIf(process.platform === "win32")("taking back and away", () => {
  test("a second setup fails and leaves what the first one made", async () => {
    const both = lab.twoNetworks();
    await both.setup("c", "/netns");
    for (const name of ["alpha", "beta"]) lab.plugin(name, { ADD: fails(4, "exists already") });
    lab.calls();
    expect((await failureOf(both.setup("c", "/netns"))).code).toBe("setup-failed");
    expect(lab.verbs().sort()).toEqual(["ADD alpha", "ADD beta"]);
    expect(both.attachments("c").attachments).toHaveLength(2);
  });

  test("a setup on more networks takes back only what is new", async () => {
    const both = lab.twoNetworks();
    const list = JSON.stringify({ cniVersion: "1.1.0", name: "other", plugins: [{ type: "gamma" }] });
    lab.plugin("gamma", { ADD: fails(7, "no") });
    await both.setup("c", "/netns");
    both.load({ list });
    lab.calls();
    await failureOf(both.setup("c", "/netns"));
    expect(lab.verbs()).toEqual(["ADD gamma", "DEL gamma"]);
    expect(both.attachments("c").attachments.map(({ network }) => network)).toEqual(["a", "b"]);
  });

  test("taking back has a limit of its own", async () => {
    const both = lab.twoNetworks({ ADD: fails(7, "no"), DEL: "exec sleep 60" }, { rollbackTimeoutMs: 300 });
    const events: NetworkingEvent[] = [];
    both.subscribe((event) => events.push(event));
    const begin = performance.now();
    const error = await failureOf(both.setup("c", "/netns"));
    expect(performance.now() - begin).toBeLessThan(20_000);
    expect(error.failures.map(({ network }) => network)).toEqual(["b"]);
    const back = events.find((event) => event.type === "rolled-back")!;
    // The DEL of b was killed, that of a was not begun any more; GC finds both.
    expect(back).toMatchObject({ failures: [{ network: "b" }, { network: "a" }] });
    expect(both.attachments("c").attachments).toHaveLength(2);
  });

  test("a config that was changed since: what it added is deleted by the plugins that it had", async () => {
    const both = lab.twoNetworks();
    await both.setup("c", "/netns");
    lab.plugin("gamma");
    lab.conflist("b", "gamma");
    both.load("directory");
    lab.calls();
    await both.remove("c");
    expect(lab.verbs()).toEqual(["DEL beta", "DEL alpha"]);
    expect(both.attachments().attachments).toEqual([]);
  });

  test("a remove that is stopped begins no other DEL and says so", async () => {
    const both = lab.twoNetworks({ DEL: "exec sleep 60" });
    await both.setup("c", "/netns");
    lab.calls();
    const error = await failureOf(both.remove("c", "/netns", { timeoutMs: 500 }));
    expect(error.failures.map(({ network }) => network)).toEqual(["b", "a"]);
    expect(error.failures[1]!.error.message).toContain("not removed: the caller stopped it before");
    expect(lab.verbs()).toEqual(["DEL beta"]);
    await expect(both.remove("c", "/netns", { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: "AbortError",
    });
    lab.plugin("beta");
    await both.remove("c", "/netns", { timeoutMs: 0 });
    expect(both.attachments().attachments).toEqual([]);
  });

  test("events wait for who asked for the stream, and the stream can be left", async () => {
    const both = lab.twoNetworks();
    const stream = both.events();
    await both.setup("c", "/netns");
    await both.remove("c");
    for await (const event of stream) {
      expect(event.type).toBe("setup");
      break;
    }
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    const end = new AbortController();
    const waiting = both.events(end.signal).next();
    end.abort();
    expect(await waiting).toEqual({ done: true, value: undefined });
  });
});
