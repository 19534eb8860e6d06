import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findGoBin } from "@tscni/test-support";
import { specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Libcni, loadConfList, type RuntimeConf } from "./index.ts";
import { fails, Lab, prints } from "./testing/lab.ts";

/** Go's cnitool v1.3.1. Its cache is always /var/lib/cni, so it gets ours there, in a mount namespace of its own. */
const goTool = findGoBin("cnitool");
const canRun = goTool !== undefined && process.getuid?.() === 0;

const netns = "/var/run/netns/tscni-interop";
const containerId = `cnitool-${createHash("sha512").update(netns).digest("hex").slice(0, 20)}`;
const file = `net1-${containerId}-eth0`;

let lab: Lab;
let libcni: Libcni;
beforeEach(() => {
  lab = new Lab();
  libcni = lab.libcni();
  mkdirSync(lab.cacheDir);
});
afterEach(() => lab.close());

function go(verb: string, env: Record<string, string> = {}): { status: number | null; text: string } {
  const mounts = `mount -t tmpfs none /var/lib && mkdir /var/lib/cni && mount --bind ${lab.cacheDir} /var/lib/cni`;
  const { status, stdout, stderr } = spawnSync(
    "unshare",
    ["-m", "sh", "-c", `${mounts} && exec ${goTool} ${verb} net1 ${netns}`],
    {
      env: { PATH: process.env.PATH, CNI_PATH: lab.bin, NETCONFPATH: join(lab.dir, "net.d"), ...env },
      encoding: "utf8",
    },
  );
  return { status, text: stdout + stderr };
}

function network(version: string, extra: object = {}) {
  const plugins = [
    {
      type: "bridge",
      capabilities: { mac: true, "io.kubernetes.cri.pod-annotations": true },
      mtu: 1500,
      text: "a<b>&c",
    },
    { type: "after" },
  ];
  lab.write(
    "net.d/10-net1.conflist",
    JSON.stringify({ cniVersion: version, name: "net1", ...extra, plugins }, null, 2),
  );
  return loadConfList(join(lab.dir, "net.d"), "net1");
}

/** A full result of each version, keys in an order that is no one's. */
function resultOf(version: string): object {
  const routes = [{ gw: "10.1.0.1", dst: "0.0.0.0/0" }, { dst: "fd00:2::/64" }];
  const dns = { search: ["b", "a"], nameservers: ["1.1.1.1"], domain: "x.y" };
  if (version < "0.3.0")
    return {
      cniVersion: version,
      ip4: { ip: "10.1.0.5/24", gateway: "10.1.0.1", routes: [routes[0]] },
      ip6: { ip: "fd00::5/64", routes: [routes[1]] },
      dns,
    };
  const v = (n: string) => (version < "1" ? { version: n } : {});
  return {
    routes:
      version < "1"
        ? routes
        : [...routes, { dst: "10.9.0.0/16", mtu: 1400, priority: 5, table: 0, scope: 253 }],
    interfaces: [
      { name: "cni0", mac: "02:00:00:00:00:01", ...(version >= "1" && { mtu: 1500 }) },
      { name: "eth0", sandbox: netns, mac: "02:00:00:00:00:02" },
    ],
    ips: [
      { address: "10.1.0.5/24", interface: 1, gateway: "10.1.0.1", ...v("4") },
      { address: "fd00::5/64", ...v("6") },
    ],
    dns,
    cniVersion: version,
  };
}

const annotations = { "a/b": "<x>&\u2028", "a.b": 'quo"te', é: "ü" };
const rt: RuntimeConf = {
  containerId,
  netns,
  ifName: "eth0",
  args: [
    ["IgnoreUnknown", "1"],
    ["K8S_POD_NAME", "p<1>"],
  ],
  capabilityArgs: {
    "io.kubernetes.cri.pod-annotations": annotations,
    mac: "02:00:00:00:00:02",
    unused: [1.5, 1e21, 1e-7],
  },
};
const goEnv = {
  CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAME=p<1>",
  CAP_ARGS: JSON.stringify(rt.capabilityArgs),
};

describe.skipIf(!canRun)("with Go's cnitool and one cache", () => {
  describe.each(specVersions)("version %s", (version) => {
    beforeEach(() => {
      lab.plugin("bridge", { ADD: prints(resultOf(version)) });
      lab.plugin("after", { ADD: prints(resultOf(version)) });
    });

    test("the same ADD leaves the same bytes, and asks the plugins the same", async () => {
      const list = network(version);
      expect(go("add", goEnv)).toMatchObject({ status: 0 });
      const theirs = readFileSync(lab.cacheFile(file), "utf8");
      const theirCalls = lab.calls();
      execFileSync("rm", [lab.cacheFile(file)]);
      await libcni.addNetworkList(list, rt);
      expect(readFileSync(lab.cacheFile(file), "utf8")).toBe(theirs);
      expect(lab.calls()).toEqual(theirCalls);
    });

    test("what Go added we read and delete, asking the plugins as Go would", async () => {
      const list = network(version);
      go("add", goEnv);
      lab.calls();
      expect(libcni.getCachedAttachments(containerId)).toMatchObject([
        { network: "net1", netns, args: rt.args, capabilityArgs: rt.capabilityArgs },
      ]);
      expect(libcni.getNetworkListCachedResult(list, rt)?.ips).toHaveLength(2);
      expect(go("del", goEnv).status).toBe(0);
      const theirCalls = lab.calls();
      go("add", goEnv);
      lab.calls();
      await libcni.delNetworkList(list, rt);
      expect(lab.calls()).toEqual(theirCalls);
      expect(existsSync(lab.cacheFile(file))).toBe(false);
    });

    test("what we added Go checks, if the version has CHECK, and deletes", async () => {
      const list = network(version);
      await libcni.addNetworkList(list, rt);
      lab.calls();
      if (version >= "0.4.0") {
        await libcni.checkNetworkList(list, rt);
        const ourCalls = lab.calls();
        expect(go("check", goEnv)).toMatchObject({ status: 0, text: "" });
        expect(lab.calls()).toEqual(ourCalls);
      }
      expect(go("del", goEnv)).toMatchObject({ status: 0, text: "" });
      expect(existsSync(lab.cacheFile(file))).toBe(false);
    });

    test("the record of our failed ADD: Go deletes it, with what the first plugin had said", async () => {
      lab.plugin("after", { ADD: fails(7, "no") });
      await expect(libcni.addNetworkList(network(version), rt)).rejects.toThrow("no");
      lab.calls();
      expect(go("del", goEnv)).toMatchObject({ status: 0, text: "" });
      const calls = lab.calls();
      expect(calls.map(({ plugin, verb }) => `${verb} ${plugin}`)).toEqual(["DEL after", "DEL bridge"]);
      if (version >= "0.4.0")
        for (const { stdin } of calls)
          expect(stdin.prevResult).toMatchObject({ ips: [{ address: "10.1.0.5/24" }, {}] });
      expect(existsSync(lab.cacheFile(file))).toBe(false);
    });

    test("the record of an ADD that got nowhere: Go deletes it", async () => {
      lab.plugin("bridge", { ADD: fails(7, "no") });
      await expect(libcni.addNetworkList(network(version), rt)).rejects.toThrow("no");
      expect(lab.readCache(file)).toMatchObject({ failed: { plugin: "bridge" } });
      expect(lab.readCache(file)).not.toHaveProperty("result");
      lab.calls();
      expect(go("del", goEnv)).toMatchObject({ status: 0, text: "" });
      expect(lab.verbs()).toEqual(["DEL after", "DEL bridge"]);
      expect(existsSync(lab.cacheFile(file))).toBe(false);
    });
  });

  const pairs = specVersions.flatMap((from) =>
    ["0.4.0", "1.0.0", "1.1.0"].filter((to) => to !== from).map((to) => [from, to] as const),
  );
  test.each(pairs)("a result cached as %s is given to a %s list as Go converts it", async (from, to) => {
    lab.plugin("bridge", { ADD: prints(resultOf(from)) });
    lab.plugin("after", { ADD: prints(resultOf(from)) });
    network(from);
    expect(go("add", goEnv).status).toBe(0);
    const list = network(to);
    lab.calls();
    expect(go("check", goEnv)).toMatchObject({ status: 0, text: "" });
    const theirs = lab.calls();
    await libcni.checkNetworkList(list, rt);
    expect(lab.calls()).toEqual(theirs);
    expect(theirs[0]!.stdin.prevResult).toMatchObject({ cniVersion: to });
  });

  test("Go's gc finishes our failed ADD, and ours what Go added", async () => {
    lab.plugin("bridge", { ADD: prints(resultOf("1.1.0")) });
    lab.plugin("after", { ADD: fails(7, "no") });
    const list = network("1.1.0");
    await expect(libcni.addNetworkList(list, rt)).rejects.toThrow("no");
    lab.calls();
    expect(go("gc")).toMatchObject({ status: 0, text: "" });
    const verbs = ["DEL after", "DEL bridge", "GC bridge", "GC after"];
    const theirs = lab.calls();
    expect(theirs.map(({ plugin, verb }) => `${verb} ${plugin}`)).toEqual(verbs);
    lab.plugin("after", { ADD: prints(resultOf("1.1.0")) });
    expect(go("add", goEnv).status).toBe(0);
    lab.calls();
    await libcni.gcNetworkList(list);
    const ours = lab.calls();
    expect(ours.map(({ plugin, verb }) => `${verb} ${plugin}`)).toEqual(verbs);
    expect(ours.slice(2)).toEqual(theirs.slice(2));
    expect(existsSync(lab.cacheFile(file))).toBe(false);
  });

  test("STATUS, and a failed plugin's message, are the same", async () => {
    lab.plugin("bridge", { STATUS: "echo oops >&2; exit 3", ADD: fails(100, "broken") });
    lab.plugin("after");
    const list = network("1.1.0");
    const ours = async (promise: Promise<unknown>) =>
      ((await promise.catch((e: unknown) => e)) as { msg: string }).msg;
    expect(go("status").text).toContain(await ours(libcni.getStatusNetworkList(list)));
    expect(go("add", goEnv).text).toContain(await ours(libcni.addNetworkList(list, rt)));
  });
});
