import { spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { batchKey, CniError, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { GcError, type Libcni, type NetworkConfigList, parsePluginConf, printResult } from "./index.ts";
import { fails, Lab, listOf, prints, runtime } from "./testing/lab.ts";

let lab: Lab;
let libcni: Libcni;
beforeEach(() => {
  lab = new Lab();
  libcni = lab.libcni();
});
afterEach(() => lab.close());

const rt = runtime();
const bridgeResult = {
  cniVersion: "1.1.0",
  interfaces: [{ name: "eth0", mac: "02:00:00:00:00:01", sandbox: "/var/run/netns/t1" }],
  ips: [{ interface: 0, address: "10.1.0.5/24", gateway: "10.1.0.1" }],
  routes: [{ dst: "0.0.0.0/0" }],
};
const cacheName = "net1-c1-eth0";

async function failureOf(promise: Promise<unknown>): Promise<CniError> {
  const error = await promise.then(
    () => undefined,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(CniError);
  return error as CniError;
}

/** A network of two plugins: bridge, which gives a result, and after, which gives it back. */
function twoPlugins(after: Record<string, string> = {}): NetworkConfigList {
  lab.plugin("bridge", { ADD: prints(bridgeResult) });
  lab.plugin("after", { ADD: prints({ ...bridgeResult, dns: { domain: "x" } }), ...after });
  return listOf(["bridge", "after"]);
}

describe.skipIf(process.platform === "win32")("libcni", () => {
  describe("ADD", () => {
    test("runs the plugins in order, each with the result so far, and stores the last one", async () => {
      const result = await libcni.addNetworkList(twoPlugins(), runtime({ args: [["K", "V"]] }));
      expect(result.dns).toEqual({ domain: "x" });
      const [first, second, ...rest] = lab.calls();
      expect(rest).toEqual([]);
      expect(first).toEqual({
        plugin: "bridge",
        verb: "ADD",
        containerId: "c1",
        ifName: "eth0",
        netns: "/var/run/netns/t1",
        args: "K=V",
        path: lab.bin,
        stdin: { type: "bridge", name: "net1", cniVersion: "1.1.0" },
      });
      expect(second!.stdin).toEqual({
        type: "after",
        name: "net1",
        cniVersion: "1.1.0",
        prevResult: bridgeResult,
      });
      expect(lab.readCache(cacheName)).toMatchObject({
        networkName: "net1",
        result: { dns: { domain: "x" } },
      });
      expect(lab.readCache(cacheName)).not.toHaveProperty("failed");
    });

    test("what a plugin's object says about name and version gives way, in any case; the rest passes untouched", async () => {
      lab.plugin("bridge", { ADD: prints({}) });
      const bridge = {
        type: "bridge",
        Name: "x",
        CNIVERSION: "0.1.0",
        big: { n: 1.5 },
        PrevResult: { cniVersion: "1.0.0" },
      };
      await libcni.addNetworkList(listOf([bridge]), rt);
      expect(lab.calls()[0]!.stdin).toEqual({
        type: "bridge",
        name: "net1",
        cniVersion: "1.1.0",
        big: { n: 1.5 },
        PrevResult: { cniVersion: "1.0.0" },
      });
    });

    test("a plugin gets the capability arguments that it declares", async () => {
      lab.plugin("bridge", { ADD: prints({}) });
      const bridge = {
        type: "bridge",
        capabilities: { mac: true, ips: false, dns: true },
        runtimeConfig: { old: 1 },
      };
      const capabilityArgs = { mac: "02:00:00:00:00:09", ips: ["1.2.3.4"], portMappings: [] };
      await libcni.addNetworkList(listOf([bridge]), runtime({ capabilityArgs }));
      expect(lab.calls()[0]!.stdin.runtimeConfig).toEqual({ mac: "02:00:00:00:00:09" });
      await libcni.addNetworkList(listOf([bridge]), runtime());
      expect(lab.calls()[0]!.stdin.runtimeConfig).toEqual({ old: 1 });
    });

    test.each(specVersions)("version %s: result, prevResult and cache have its shape", async (version) => {
      const legacy = version < "0.3.0";
      const result = legacy
        ? { cniVersion: version, ip4: { ip: "10.1.0.5/24", gateway: "10.1.0.1" }, dns: {} }
        : { cniVersion: version, ips: [{ ...(version < "1" && { version: "4" }), address: "10.1.0.5/24" }] };
      lab.plugin("bridge", { ADD: prints(result) });
      lab.plugin("after", { ADD: prints({}) });
      const list = listOf(["bridge", "after"], { cniVersion: version });
      const last = await libcni.addNetworkList(list, rt);
      const expected = version < "1" ? { dns: {}, ...result } : result;
      expect(lab.calls()[1]!.stdin.prevResult).toEqual(expected);
      expect(JSON.parse(printResult(last, version))).toEqual(
        version < "1" ? { cniVersion: version, dns: {} } : { cniVersion: version },
      );
      expect(libcni.getNetworkListCachedResult(list, rt)?.ips).toEqual([]);
      await libcni.delNetworkList(list, rt);
      const withPrevResult = lab.calls().filter(({ stdin }) => stdin.prevResult !== undefined);
      expect(withPrevResult.length).toBe(version < "0.4.0" ? 0 : 2);
    });

    test.each(["null", "{}"])("%s counts as an empty result", async (text) => {
      lab.plugin("bridge", { ADD: `echo '${text}'` });
      expect((await libcni.addNetworkList(listOf(["bridge"]), rt)).ips).toEqual([]);
    });

    test.each([
      ["", "failed to unmarshal raw result: unexpected end of JSON input"],
      ["echo garbage", "failed to unmarshal raw result: "],
      [prints([1]), "is not an object"],
      [prints({ cniVersion: "9.0.0" }), 'unsupported CNI result version "9.0.0"'],
      [prints({ ips: [{ address: "nope" }] }), 'result.ips[0].address: "nope" is not a CIDR address'],
    ])("a success with the output %j fails", async (body, message) => {
      lab.plugin("bridge", { ADD: body || ":" });
      const error = await failureOf(libcni.addNetworkList(listOf(["bridge"]), rt));
      expect(error.message).toContain(message);
      expect(error.msg).toMatch(/^plugin type="bridge" failed \(add\): /);
    });

    test("the error names plugin, network, verb and time, and keeps the code", async () => {
      lab.plugin("bridge", { ADD: `echo why >&2; ${fails(11, "busy")}` });
      const error = await failureOf(libcni.addNetworkList(listOf([{ type: "bridge", name: "n" }]), rt));
      expect(error).toMatchObject({ code: 11, msg: 'plugin type="bridge" name="n" failed (add): busy' });
      expect(error.details).toMatch(
        /^bridge ADD for network "net1" failed after \d+ ms: exit status 1\nstderr: why$/,
      );
    });

    test.each([
      [{ containerId: "" }, 3, "missing containerID"],
      [{ containerId: "../x" }, 4, "invalid characters in containerID"],
      [{ ifName: "a/b" }, 4, "interface name contains / or : or whitespace characters"],
      [{ ifName: "0123456789abcdef" }, 4, "interface name is too long"],
    ])("%j is refused before any plugin runs", async (bad, code, message) => {
      const error = await failureOf(libcni.addNetworkList(twoPlugins(), runtime(bad)));
      expect(error).toMatchObject({ code, msg: `plugin type="bridge" failed (add): ${message}` });
      expect(lab.calls()).toEqual([]);
      expect(existsSync(lab.cacheDir)).toBe(false);
    });

    test("a plugin that is missing is found out before the first one runs", async () => {
      const list = twoPlugins();
      lab.removePlugin("after");
      const error = await failureOf(libcni.addNetworkList(list, rt));
      expect(error.msg).toBe(
        `plugin type="after" failed (add): failed to find plugin "after" in path [${lab.bin}]`,
      );
      expect(error.details).toMatch(/what to do: .*\nin network "net1"$/);
      expect(lab.calls()).toEqual([]);
    });

    test("a cache that can't be written is found out before the first one runs", async () => {
      const list = twoPlugins();
      writeFileSync(lab.cacheDir, "a file where the folder should be");
      const error = await failureOf(libcni.addNetworkList(list, rt));
      expect(error.msg).toMatch(/^failed to set network "net1" cached result: /);
      expect(lab.calls()).toEqual([]);
    });
  });

  describe("an ADD that fails in the middle", () => {
    test("leaves a record, and what DEL needs to finish it", async () => {
      const list = twoPlugins({ ADD: fails(7, "no") });
      await failureOf(libcni.addNetworkList(list, runtime({ capabilityArgs: { mac: "m" } })));
      expect(lab.verbs()).toEqual(["ADD bridge", "ADD after"]);
      expect(libcni.getNetworkListCachedResult(list, rt)).toBeUndefined();
      const [attachment] = libcni.getCachedAttachments("c1");
      expect(attachment).toMatchObject({
        network: "net1",
        result: bridgeResult,
        failed: { verb: "ADD", plugin: "after", message: expect.stringContaining("no") },
      });
      await libcni.delNetworkList(list, rt);
      const calls = lab.calls();
      expect(calls.map(({ plugin, verb }) => `${verb} ${plugin}`)).toEqual(["DEL after", "DEL bridge"]);
      expect(calls[0]!.stdin.prevResult).toEqual(bridgeResult);
      expect(libcni.getCachedAttachments()).toEqual([]);
    });

    test("is finished by GC even when the same plugin fails again", async () => {
      const list = twoPlugins({ ADD: fails(7, "no"), DEL: fails(7, "still no") });
      await failureOf(libcni.addNetworkList(list, rt));
      lab.calls();
      const error = (await failureOf(libcni.gcNetworkList(list))) as GcError;
      expect(error).toBeInstanceOf(GcError);
      expect(error.msg).toBe(
        'failed to delete stale attachment c1 eth0: plugin type="after" failed (delete): still no',
      );
      expect(error.report.failed.map(({ attachment }) => attachment.containerId)).toEqual(["c1"]);
      expect(lab.verbs()).toEqual(["DEL after", "DEL bridge", "GC bridge", "GC after"]);
      expect(libcni.getCachedAttachments()[0]!.failed).toMatchObject({ verb: "ADD", plugin: "after" });
      lab.plugin("after");
      const report = await libcni.gcNetworkList(list);
      expect(report.deleted.map(({ containerId }) => containerId)).toEqual(["c1"]);
      expect(libcni.getCachedAttachments()).toEqual([]);
    });

    test("is taken back at once with rollback, the failed plugin too", async () => {
      const list = twoPlugins({ ADD: fails(7, "no") });
      const error = await failureOf(libcni.addNetworkList(list, rt, { rollback: true }));
      expect(error).toMatchObject({ code: 7, msg: 'plugin type="after" failed (add): no' });
      expect(error.details).toContain("rolled back");
      expect(lab.verbs()).toEqual(["ADD bridge", "ADD after", "DEL after", "DEL bridge"]);
      expect(libcni.getCachedAttachments()).toEqual([]);
    });

    test("keeps its record when the rollback fails too", async () => {
      libcni = lab.libcni({ rollback: true });
      const list = twoPlugins({ ADD: fails(7, "no"), DEL: fails(5, "stuck") });
      const error = await failureOf(libcni.addNetworkList(list, rt));
      expect(error.code).toBe(7);
      expect(error.details).toContain('plugin type="after" failed (delete): stuck');
      expect(lab.verbs()).toEqual(["ADD bridge", "ADD after", "DEL after", "DEL bridge"]);
      expect(libcni.getCachedAttachments()[0]!.failed?.plugin).toBe("after");
    });

    test("a second ADD that the first plugin refuses leaves the attachment and its record alone", async () => {
      const list = twoPlugins();
      await libcni.addNetworkList(list, rt);
      const before = readFileSync(lab.cacheFile(cacheName), "utf8");
      lab.plugin("bridge", { ADD: fails(999, "eth0 exists") });
      lab.calls();
      await failureOf(libcni.addNetworkList(list, rt, { rollback: true }));
      expect(lab.verbs()).toEqual(["ADD bridge"]);
      expect(readFileSync(lab.cacheFile(cacheName), "utf8")).toBe(before);
    });

    test("that follows an unfinished DEL rolls back all plugins, not only its own", async () => {
      const list = twoPlugins({ ADD: prints(bridgeResult), DEL: fails(5, "stuck") });
      await libcni.addNetworkList(list, rt);
      await failureOf(libcni.delNetworkList(list, rt));
      twoPlugins();
      lab.plugin("bridge", { ADD: fails(7, "no") });
      lab.calls();
      await failureOf(libcni.addNetworkList(list, rt, { rollback: true }));
      expect(lab.verbs()).toEqual(["ADD bridge", "DEL after", "DEL bridge"]);
      expect(libcni.getCachedAttachments()).toEqual([]);
    });

    test("killed without a word, it is on record all the same", async () => {
      const list = twoPlugins();
      lab.plugin("bridge", {
        ADD: `cp ${lab.cacheFile(cacheName)} ${lab.dir}/seen; ${prints(bridgeResult)}`,
      });
      await libcni.addNetworkList(list, rt);
      const seen = JSON.parse(readFileSync(join(lab.dir, "seen"), "utf8"));
      expect(seen).toMatchObject({ kind: "cniCacheV1", failed: { verb: "ADD", plugin: "bridge" } });
      expect(seen).not.toHaveProperty("result");
    });

    test("a result that can't be stored is a failed ADD", async () => {
      const list = twoPlugins();
      // A folder under the name of the cache file is what no rename can replace.
      lab.plugin("after", {
        ADD: `rm ${lab.cacheFile(cacheName)}; mkdir ${lab.cacheFile(cacheName)}; echo '{}'`,
      });
      const error = await failureOf(libcni.addNetworkList(list, rt, { rollback: true }));
      expect(error.msg).toMatch(/^failed to set network "net1" cached result: /);
      expect(lab.verbs()).toEqual(["ADD bridge", "ADD after", "DEL after", "DEL bridge"]);
      expect(readdirSync(join(lab.cacheDir, "results"))).toEqual([cacheName]);
    });
  });

  describe("DEL", () => {
    test("runs in reverse with the cached result and forgets", async () => {
      const list = twoPlugins();
      await libcni.addNetworkList(list, rt);
      lab.calls();
      await libcni.delNetworkList(list, runtime({ netns: "" }));
      const calls = lab.calls();
      expect(calls.map(({ plugin }) => plugin)).toEqual(["after", "bridge"]);
      expect(calls.map(({ netns }) => netns)).toEqual(["", ""]);
      for (const { stdin } of calls)
        expect(stdin.prevResult).toEqual({ ...bridgeResult, dns: { domain: "x" } });
      expect(readdirSync(join(lab.cacheDir, "results"))).toEqual([]);
    });

    test("a plugin that knows no such container (code 3) has nothing to clean up, and that is no failure", async () => {
      const list = listOf(["alpha", "beta"]);
      for (const name of ["alpha", "beta"]) lab.plugin(name, { ADD: prints({ cniVersion: "1.1.0" }) });
      const libcni = lab.libcni();
      await libcni.addNetworkList(list, runtime());
      lab.plugin("beta", { DEL: fails(3, "never heard of it") });
      lab.calls();
      await libcni.delNetworkList(list, runtime());
      expect(lab.verbs()).toEqual(["DEL beta", "DEL alpha"]);
      expect(libcni.getCachedAttachments()).toEqual([]);
      expect(lab.notes.join()).toContain("beta has nothing of container c1: never heard of it");
    });

    test("goes on past failing and missing plugins, tells of all, and can be retried", async () => {
      const list = listOf(["bridge", "gone", "after"]);
      lab.plugin("gone", { ADD: prints(bridgeResult) });
      twoPlugins({ DEL: fails(11, "not now") });
      await libcni.addNetworkList(list, rt);
      lab.removePlugin("gone");
      lab.calls();
      const error = await failureOf(libcni.delNetworkList(list, rt));
      expect(error.code).toBe(11);
      expect(error.message).toContain('plugin type="after" failed (delete): not now');
      expect(error.message).toContain('plugin type="gone" failed (delete): failed to find plugin "gone"');
      expect(lab.verbs()).toEqual(["DEL after", "DEL bridge"]);
      expect(libcni.getCachedAttachments()[0]).toMatchObject({
        failed: { verb: "DEL", plugin: "after" },
        result: { ips: bridgeResult.ips },
      });
      expect(libcni.getNetworkListCachedResult(list, rt)?.ips).toHaveLength(1);
      lab.plugin("gone");
      lab.plugin("after");
      await libcni.delNetworkList(list, rt);
      expect(libcni.getCachedAttachments()).toEqual([]);
    });

    test("gives again what ADD got and the runtime does not repeat", async () => {
      lab.plugin("portmap", { ADD: prints({}) });
      const list = listOf([{ type: "portmap", capabilities: { portMappings: true, mac: true } }]);
      const capabilityArgs = { portMappings: [{ hostPort: 8080 }], mac: "old" };
      await libcni.addNetworkList(list, runtime({ capabilityArgs, args: [["A", "B"]] }));
      lab.calls();
      await libcni.delNetworkList(list, runtime({ capabilityArgs: { mac: "new" } }));
      const [call] = lab.calls();
      expect(call!.stdin.runtimeConfig).toEqual({ portMappings: [{ hostPort: 8080 }], mac: "new" });
      expect(call!.args).toBe("A=B");
    });

    test("without a cache it runs without a result, and leaves no record when it fails", async () => {
      const list = twoPlugins({ DEL: fails(1, "x") });
      await failureOf(libcni.delNetworkList(list, rt));
      const calls = lab.calls();
      expect(calls.map(({ plugin }) => plugin)).toEqual(["after", "bridge"]);
      expect(calls[0]!.stdin).not.toHaveProperty("prevResult");
      expect(libcni.getCachedAttachments()).toEqual([]);
    });

    test.each([
      "",
      "{",
      '{"kind":"cniCacheV1"}',
      '{"kind":"other"}',
      "[]",
      '{"kind":"cniCacheV1","networkName":1}',
    ])("a cache file with %j does not stop it", async (text) => {
      const list = twoPlugins();
      lab.write(`cache/results/${cacheName}`, text);
      await libcni.delNetworkList(list, rt);
      expect(lab.verbs()).toEqual(["DEL after", "DEL bridge"]);
      expect(lab.notes.join()).toContain(cacheName);
      expect(existsSync(lab.cacheFile(cacheName))).toBe(false);
    });

    test("a damaged cache file whose DEL fails becomes a record", async () => {
      const list = twoPlugins({ DEL: fails(1, "x") });
      lab.write(`cache/results/${cacheName}`, "");
      await failureOf(libcni.delNetworkList(list, rt));
      expect(libcni.getCachedAttachments()[0]!.failed).toMatchObject({ verb: "DEL", plugin: "after" });
    });

    test("a bare result of old libraries is used", async () => {
      const list = twoPlugins();
      lab.write(
        `cache/results/${cacheName}`,
        JSON.stringify({ cniVersion: "0.4.0", ips: [{ version: "4", address: "10.1.0.5/24" }] }),
      );
      await libcni.delNetworkList(list, rt);
      expect(lab.calls()[0]!.stdin.prevResult).toEqual({
        cniVersion: "1.1.0",
        ips: [{ address: "10.1.0.5/24" }],
      });
    });

    test("an expired signal does not keep it from the plugins, one that fires later does", async () => {
      const list = twoPlugins();
      await libcni.addNetworkList(list, rt);
      lab.calls();
      await libcni.delNetworkList(list, rt, { signal: AbortSignal.abort() });
      expect(lab.verbs()).toEqual(["DEL after", "DEL bridge"]);
      lab.plugin("after", { ADD: prints({}), DEL: "sleep 60" });
      await libcni.addNetworkList(list, rt);
      lab.calls();
      const error = await failureOf(libcni.delNetworkList(list, rt, { signal: AbortSignal.timeout(200) }));
      expect(error.message).toContain("stopped at the caller's request");
      expect(error.message).toContain(
        'plugin type="bridge" failed (delete): not run: the caller stopped the DEL',
      );
      expect(lab.verbs()).toEqual(["DEL after"]);
      expect(libcni.getCachedAttachments()).toHaveLength(1);
    });

    test("by the cache alone, when the config is gone", async () => {
      await libcni.addNetworkList(twoPlugins(), rt);
      lab.calls();
      await libcni.delAttachment(libcni.getCachedAttachments("c1")[0]!);
      expect(lab.verbs()).toEqual(["DEL after", "DEL bridge"]);
      expect(libcni.getCachedAttachments()).toEqual([]);
    });
  });

  test("a plugin that hangs is killed at the time limit, and a rollback has its own", async () => {
    libcni = lab.libcni({ timeoutMs: 400, rollback: true });
    const list = twoPlugins({ ADD: "sleep 60" });
    const error = await failureOf(libcni.addNetworkList(list, rt));
    expect(error.details).toContain("stopped at its time limit of 400 ms");
    expect(error.details).toContain("rolled back");
    expect(lab.verbs()).toEqual(["ADD bridge", "ADD after", "DEL after", "DEL bridge"]);
  });

  test("an ADD that is aborted kills the plugin and still rolls back", async () => {
    const list = twoPlugins({ ADD: "sleep 60" });
    const options = { signal: AbortSignal.timeout(300), rollback: true };
    const error = await failureOf(libcni.addNetworkList(list, rt, options));
    expect(error.details).toContain("stopped at the caller's request");
    expect(lab.verbs()).toEqual(["ADD bridge", "ADD after", "DEL after", "DEL bridge"]);
    expect(libcni.getCachedAttachments()).toEqual([]);
  });

  describe("CHECK", () => {
    test("gives every plugin the cached result in the list's version, and stops at the first error", async () => {
      const list = twoPlugins();
      await libcni.addNetworkList(list, rt);
      lab.calls();
      await libcni.checkNetworkList(listOf(["bridge", "after"], { cniVersion: "0.4.0" }), rt);
      const calls = lab.calls();
      expect(calls.map(({ plugin, verb }) => `${verb} ${plugin}`)).toEqual(["CHECK bridge", "CHECK after"]);
      expect(calls[0]!.stdin.prevResult).toMatchObject({
        cniVersion: "0.4.0",
        ips: [{ version: "4", address: "10.1.0.5/24" }],
      });
      lab.plugin("bridge", { CHECK: fails(100, "gone") });
      const error = await failureOf(libcni.checkNetworkList(list, rt));
      expect(error).toMatchObject({ code: 100, msg: "gone" });
      expect(lab.verbs()).toEqual(["CHECK bridge"]);
    });

    test.each(["0.3.1", "0.1.0", ""])("not below 0.4.0 (%j)", async (cniVersion) => {
      const list = { ...twoPlugins(), cniVersion, disableCheck: true };
      expect((await failureOf(libcni.checkNetworkList(list, rt))).msg).toBe(
        `configuration version "${cniVersion}" does not support the CHECK command`,
      );
    });

    test("disableCheck runs nothing; without a cache there is no result", async () => {
      await libcni.checkNetworkList({ ...twoPlugins(), disableCheck: true }, rt);
      expect(lab.calls()).toEqual([]);
      await libcni.checkNetworkList(twoPlugins(), rt);
      expect(lab.calls()[0]!.stdin).not.toHaveProperty("prevResult");
    });

    test("a damaged cache file is told", async () => {
      lab.write(`cache/results/${cacheName}`, "");
      expect((await failureOf(libcni.checkNetworkList(twoPlugins(), rt))).msg).toMatch(
        /^failed to get network "net1" cached result: /,
      );
    });
  });

  describe("STATUS", () => {
    test("asks each plugin with name and version, and gives the first error as it is", async () => {
      const list = twoPlugins({ STATUS: fails(50, "no backend") });
      const error = await failureOf(libcni.getStatusNetworkList(list));
      expect(error).toMatchObject({ code: 50, msg: "no backend" });
      const calls = lab.calls();
      expect(calls.map(({ plugin, verb }) => `${verb} ${plugin}`)).toEqual(["STATUS bridge", "STATUS after"]);
      expect(calls[0]).toMatchObject({
        containerId: "",
        netns: "",
        ifName: "",
        args: "",
        path: lab.bin,
        stdin: { type: "bridge", name: "net1", cniVersion: "1.1.0" },
      });
    });

    test("below 1.1.0 nothing is asked", async () => {
      const list = { ...twoPlugins({ STATUS: fails(50, "x") }), cniVersion: "1.0.0" };
      await libcni.getStatusNetworkList(list);
      expect(lab.calls()).toEqual([]);
    });
  });

  describe("GC", () => {
    async function attach(list: NetworkConfigList, ...ids: string[]) {
      for (const containerId of ids) await libcni.addNetworkList(list, runtime({ containerId }));
      lab.calls();
    }

    test("deletes what is not valid, as it was added, then tells the plugins what is", async () => {
      const list = twoPlugins();
      await libcni.addNetworkList(list, runtime({ containerId: "c1", args: [["K", "V"]] }));
      await attach(list, "c2");
      await attach(listOf(["bridge"], { name: "other" }), "c3");
      const validAttachments = [{ containerId: "c2", ifName: "eth0" }];
      const report = await libcni.gcNetworkList(list, { validAttachments });
      expect(report).toMatchObject({
        disabled: false,
        failed: [],
        plugins: ["bridge", "after"],
        problems: [],
      });
      expect(report.deleted.map((a) => a.containerId)).toEqual(["c1"]);
      expect(report.kept.map((a) => a.containerId)).toEqual(["c2"]);
      const calls = lab.calls();
      expect(calls.map(({ plugin, verb, containerId }) => `${verb} ${plugin} ${containerId}`)).toEqual([
        "DEL after c1",
        "DEL bridge c1",
        "GC bridge ",
        "GC after ",
      ]);
      expect(calls[0]).toMatchObject({ netns: "/var/run/netns/t1", args: "K=V" });
      const valid = [{ containerID: "c2", ifname: "eth0" }];
      expect(calls[2]!.stdin).toEqual({
        type: "bridge",
        name: "net1",
        cniVersion: "1.1.0",
        "cni.dev/valid-attachments": valid,
        "cni.dev/attachments": valid,
      });
      expect(libcni.getCachedAttachments().map((a) => a.containerId)).toEqual(["c2", "c3"]);
    });

    test("without a list every attachment goes, and the plugins learn nothing; an empty list says that none is valid", async () => {
      const list = twoPlugins();
      await attach(list, "c1", "c2");
      expect((await libcni.gcNetworkList(list)).deleted).toHaveLength(2);
      expect(lab.calls().at(-1)!.stdin).not.toHaveProperty("cni.dev/valid-attachments");
      await attach(list, "c1");
      expect((await libcni.gcNetworkList(list, { validAttachments: [] })).deleted).toHaveLength(1);
      expect(lab.calls().at(-1)!.stdin["cni.dev/valid-attachments"]).toEqual([]);
    });

    test("a dry run changes nothing", async () => {
      const list = twoPlugins();
      await attach(list, "c1", "c2");
      const valid = { validAttachments: [{ containerId: "c1", ifName: "eth0" }] };
      const report = await libcni.gcNetworkList(list, valid, { dryRun: true });
      expect(report.deleted.map((a) => a.containerId)).toEqual(["c2"]);
      expect(lab.calls()).toEqual([]);
      expect(libcni.getCachedAttachments()).toHaveLength(2);
    });

    test("goes on past errors and reports them all", async () => {
      const list = twoPlugins({
        GC: fails(7, "gc no"),
        DEL: `[ $CNI_CONTAINERID != c1 ] || { ${fails(5, "del no")}; }`,
      });
      await attach(list, "c1", "c2");
      const error = (await failureOf(libcni.gcNetworkList(list))) as GcError;
      expect(error.code).toBe(5);
      expect(error.message).toContain("failed to delete stale attachment c1 eth0");
      expect(error.message).toContain("failed to GC plugin after: gc no");
      expect(error.report.deleted.map((a) => a.containerId)).toEqual(["c2"]);
      expect(error.report.plugins).toEqual(["bridge"]);
    });

    test("disableGC does nothing; below 1.1.0 there is no verb", async () => {
      const list = twoPlugins();
      await attach(list, "c1");
      expect((await libcni.gcNetworkList({ ...list, disableGC: true })).disabled).toBe(true);
      expect(lab.calls()).toEqual([]);
      await libcni.gcNetworkList({ ...list, cniVersion: "1.0.0" });
      expect(lab.verbs()).toEqual(["DEL after", "DEL bridge"]);
    });

    test("a cache that can't be listed is an error, and the plugins run all the same", async () => {
      const list = twoPlugins();
      lab.write("cache/results", "no folder");
      const error = await failureOf(libcni.gcNetworkList(list, { validAttachments: [] }));
      expect(error.msg).toMatch(/^failed to list the cached attachments: /);
      expect(lab.verbs()).toEqual(["GC bridge", "GC after"]);
    });

    test("sweeps away what killed writers left, not what is being written", async () => {
      const old = lab.write("cache/results/.tmp-1-old", "half");
      const fresh = lab.write("cache/results/.tmp-1-new", "half");
      utimesSync(old, 1000, 1000);
      await libcni.gcNetworkList(twoPlugins());
      expect([existsSync(old), existsSync(fresh)]).toEqual([false, true]);
    });

    test("tells the plugins of the first DEL which others follow; those follow all the same", async () => {
      const list = twoPlugins();
      for (const containerId of ["a", "b", "c"]) await libcni.addNetworkList(list, runtime({ containerId }));
      lab.calls();
      const kept = { containerId: "b", ifName: "eth0" };
      await libcni.gcNetworkList(list, { validAttachments: [kept] });
      const told = lab
        .calls()
        .filter(({ verb }) => verb === "DEL")
        .map(({ containerId, plugin, stdin }) => [containerId, plugin, stdin[batchKey]]);
      const others = [{ containerID: "c", ifname: "eth0" }];
      expect(told).toEqual([
        ["a", "after", others],
        ["a", "bridge", others],
        ["c", "after", undefined],
        ["c", "bridge", undefined],
      ]);
    });

    test("never runs two DELs of one container at a time, but those of several", async () => {
      const mark = `${lab.dir}/$CNI_CONTAINERID`;
      const del = `mkdir ${mark}.busy || exit 1; sleep 0.15; rmdir ${mark}.busy`;
      lab.plugin("slow", { ADD: prints({}), DEL: del });
      const list = listOf(["slow"]);
      for (const containerId of ["a", "b", "c", "d"])
        for (const ifName of ["eth0", "eth1"])
          await libcni.addNetworkList(list, runtime({ containerId, ifName }));
      const begin = performance.now();
      expect((await libcni.gcNetworkList(list)).deleted).toHaveLength(8);
      expect(performance.now() - begin).toBeLessThan(8 * 150);
    });
  });

  describe("validate", () => {
    test("gives the capabilities, sorted and once", async () => {
      twoPlugins();
      const list = listOf([
        { type: "bridge", capabilities: { mac: true, ips: true } },
        { type: "after", capabilities: { mac: true, dns: false } },
      ]);
      expect(await libcni.validateNetworkList(list)).toEqual(["ips", "mac"]);
      expect(lab.verbs()).toEqual(["VERSION bridge", "VERSION after"]);
    });

    test("tells every plugin that is missing or too old", async () => {
      twoPlugins();
      const list = listOf(["bridge", "nope", "after"], { cniVersion: "0.3.1" });
      const error = await failureOf(libcni.validateNetworkList(list));
      expect(error.message).toContain('plugin bridge does not support config version "0.3.1"');
      expect(error.message).toContain("it supports 0.4.0, 1.0.0, 1.1.0");
      expect(error.message).toContain('failed to find plugin "nope"');
      expect(error.message).toContain("plugin after does not support");
    });

    test("the versions of one plugin", async () => {
      twoPlugins();
      expect((await libcni.getVersionInfo("bridge")).supportedVersions).toEqual(["0.4.0", "1.0.0", "1.1.0"]);
    });
  });

  describe("the cache", () => {
    test("attachments are listed by file name, foreign files are told apart", async () => {
      const list = twoPlugins();
      for (const containerId of ["c2", "c1", "c10"])
        await libcni.addNetworkList(list, runtime({ containerId }));
      lab.write("cache/results/net1-zero-eth0", "");
      lab.write("cache/results/.tmp-1-x", "half");
      expect(libcni.getCachedAttachments().map((a) => a.containerId)).toEqual(["c1", "c10", "c2"]);
      expect(libcni.getCachedAttachments("c1").map((a) => a.containerId)).toEqual(["c1"]);
      const { problems } = libcni.readCache();
      expect(problems.map(({ file }) => file)).toEqual([lab.cacheFile("net1-zero-eth0")]);
      expect(lab.libcni({ cacheDir: join(lab.dir, "none") }).getCachedAttachments()).toEqual([]);
    });

    test("names that read the same are kept apart", async () => {
      lab.plugin("bridge", { ADD: `printf '{"cniVersion":"1.1.0","dns":{"domain":"%s"}}' $CNI_CONTAINERID` });
      const one = listOf(["bridge"], { name: "a" });
      const two = listOf(["bridge"], { name: "a-b" });
      await libcni.addNetworkList(one, runtime({ containerId: "b-c" }));
      await libcni.addNetworkList(two, runtime({ containerId: "c" }));
      expect(libcni.getCachedAttachments().map((a) => `${a.network} ${a.containerId}`)).toEqual([
        "a b-c",
        "a-b c",
      ]);
      expect(libcni.getNetworkListCachedResult(one, runtime({ containerId: "b-c" }))?.dns.domain).toBe("b-c");
      expect(libcni.getNetworkListCachedResult(two, runtime({ containerId: "c" }))?.dns.domain).toBe("c");
      await libcni.delNetworkList(one, runtime({ containerId: "b-c" }));
      expect(libcni.getCachedAttachments().map((a) => a.network)).toEqual(["a-b"]);
      await libcni.delNetworkList(two, runtime({ containerId: "c" }));
      expect(libcni.getCachedAttachments()).toEqual([]);
    });

    test("the config of an attachment, with its arguments", async () => {
      const list = twoPlugins();
      expect(libcni.getNetworkListCachedConfig(list, rt)).toBeUndefined();
      await libcni.addNetworkList(list, runtime({ args: [["A", "B"]], capabilityArgs: { mac: "m" } }));
      expect(libcni.getNetworkListCachedConfig(list, rt)).toEqual({
        config: list.bytes,
        rt: { ...rt, args: [["A", "B"]], capabilityArgs: { mac: "m" } },
      });
    });

    test("is for root's eyes only", async () => {
      await libcni.addNetworkList(twoPlugins(), rt);
      expect(statSync(join(lab.cacheDir, "results")).mode & 0o777).toBe(0o700);
      expect(statSync(lab.cacheFile(cacheName)).mode & 0o777).toBe(0o600);
    });

    // Root reads everything.
    test("a file that can't be read does not stop DEL", async (ctx) => {
      ctx.skip(process.getuid?.() === 0, "root can read every file");
      const list = twoPlugins();
      await libcni.addNetworkList(list, rt);
      lab.calls();
      chmodSync(lab.cacheFile(cacheName), 0);
      await libcni.delNetworkList(list, rt);
      expect(lab.verbs()).toEqual(["DEL after", "DEL bridge"]);
    });
  });

  test("killed in the middle of an ADD, another process finds and finishes it", async () => {
    twoPlugins({ ADD: `touch ${lab.dir}/running; sleep 60` });
    const code = `
      import { Libcni, parseConfList } from "@tscni/libcni";
      const list = parseConfList('{"cniVersion":"1.1.0","name":"net1","plugins":[{"type":"bridge"},{"type":"after"}]}');
      await new Libcni({ path: [${JSON.stringify(lab.bin)}], cacheDir: ${JSON.stringify(lab.cacheDir)} })
        .addNetworkList(list, ${JSON.stringify(rt)});`;
    const args = process.versions.bun ? ["-e", code] : ["--input-type=module", "-e", code];
    const child = spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: "inherit" });
    const closed = new Promise((resolve) => child.once("close", resolve));
    for (let i = 0; i < 500 && !existsSync(join(lab.dir, "running")); i++)
      await new Promise((resolve) => setTimeout(resolve, 20));
    child.kill("SIGKILL");
    await closed;
    expect(libcni.getCachedAttachments()).toMatchObject([{ containerId: "c1", failed: { verb: "ADD" } }]);
    lab.calls();
    await libcni.gcNetworkList(listOf(["bridge", "after"]));
    expect(lab.verbs().slice(0, 2)).toEqual(["DEL after", "DEL bridge"]);
    expect(libcni.getCachedAttachments()).toEqual([]);
  });

  test("64 containers at once", async () => {
    const list = twoPlugins();
    const all = Array.from({ length: 64 }, (_, i) => runtime({ containerId: `c${i}` }));
    await Promise.all(all.map((one) => libcni.addNetworkList(list, one)));
    expect(libcni.getCachedAttachments()).toHaveLength(64);
    await Promise.all(all.map((one) => libcni.delNetworkList(list, one)));
    expect(libcni.getCachedAttachments()).toEqual([]);
    expect(readdirSync(join(lab.cacheDir, "results"))).toEqual([]);
    expect(lab.calls()).toHaveLength(256);
  });

  test("a single plugin, the same verbs", async () => {
    lab.plugin("bridge", { ADD: prints(bridgeResult) });
    const conf = parsePluginConf(
      '{"type":"bridge","name":"single","cniVersion":"1.0.0","capabilities":{"mac":true}}',
    );
    expect((await libcni.addNetwork(conf, rt)).ips).toHaveLength(1);
    expect(libcni.getNetworkCachedResult(conf, rt)?.ips).toHaveLength(1);
    expect(libcni.getNetworkCachedConfig(conf, rt)?.config).toBe(conf.bytes);
    expect(await libcni.validateNetwork(conf)).toEqual(["mac"]);
    await libcni.checkNetwork(conf, rt);
    await libcni.delAttachment(libcni.getCachedAttachments()[0]!);
    expect(libcni.getCachedAttachments()).toEqual([]);
    await libcni.delNetwork(conf, rt);
    expect(lab.verbs()).toEqual(["ADD bridge", "VERSION bridge", "CHECK bridge", "DEL bridge", "DEL bridge"]);
  });
});
