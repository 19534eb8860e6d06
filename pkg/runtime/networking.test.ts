import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fails, prints } from "../libcni/testing/lab.ts";
import { isNetworkingError, type Networking, type NetworkingEvent, type NetworkingOptions } from "./index.ts";
import { failureOf, NetworkingLab, resultOf } from "./testing.ts";

let lab: NetworkingLab;
let configDir: string;
beforeEach(() => {
  lab = new NetworkingLab();
  configDir = lab.configDir;
});
afterEach(() => lab.close());

const conflist = (name: string, type: string, extra?: Record<string, unknown>) =>
  lab.conflist(name, type, extra);
const networking = (options?: NetworkingOptions): Networking => lab.networking(options);
const twoNetworks = (b?: Record<string, string>): Networking => lab.twoNetworks(b);

describe("load", () => {
  test("a folder's files in the order of their names, interfaces numbered whatever else is loaded", () => {
    conflist("b", "beta");
    conflist("a", "alpha");
    writeFileSync(
      join(configDir, "c.conf"),
      JSON.stringify({ cniVersion: "1.0.0", name: "c", type: "gamma" }),
    );
    const names = (max: number) =>
      networking({ maxConfigs: max })
        .load("loopback", "directory")
        .map(({ name, ifName }) => `${name} ${ifName}`);
    expect(names(0)).toEqual(["cni-loopback lo", "a eth0", "b eth1", "c eth2"]);
    expect(names(1)).toEqual(["cni-loopback lo", "a eth0"]);
    expect(
      networking({ maxConfigs: 1, interfacePrefix: "net" })
        .load("all")
        .map((n) => n.ifName),
    ).toEqual(["net0", "net1", "net2"]);
  });

  test("texts and files: a list is numbered by what is loaded, a single plugin by its index", () => {
    const list = JSON.stringify({ cniVersion: "1.1.0", name: "l", plugins: [{ type: "x" }] });
    const conf = JSON.stringify({ cniVersion: "1.0.0", name: "s", type: "y" });
    const [listFile, confFile] = [lab.write("l.conflist", list), lab.write("s.conf", conf)];
    const loaded = networking().load(
      "loopback",
      { list },
      { listFile },
      { conf },
      { conf, index: 7 },
      { confFile, index: 3 },
    );
    expect(loaded.map(({ ifName }) => ifName)).toEqual(["lo", "eth1", "eth2", "eth0", "eth7", "eth3"]);
  });

  test("none there, one that can't be parsed, one that can't be read, one without plugins", () => {
    const code = (load: () => unknown) => {
      try {
        load();
      } catch (error) {
        return isNetworkingError(error) ? error.code : error;
      }
      return undefined;
    };
    expect(code(() => networking().load("directory"))).toBe("not-initialized");
    expect(code(() => networking().load({ listFile: join(configDir, "none.conflist") }))).toBe("read-failed");
    expect(code(() => networking().load({ list: "{" }))).toBe("invalid-config");
    expect(code(() => networking().load({ list: '{"cniVersion":"1.0.0","name":"x"}' }))).toBe(
      "invalid-config",
    );
    // A conflist in a .conf file has no type.
    writeFileSync(join(configDir, "x.conf"), '{"cniVersion":"1.0.0","name":"x","plugins":[{"type":"a"}]}');
    expect(code(() => networking().load("directory"))).toBe("invalid-config");
  });

  test("all or none: the networks of before stay in force", () => {
    conflist("a", "alpha");
    const loaded = networking();
    loaded.load("directory");
    writeFileSync(join(configDir, "b.conflist"), "{");
    expect(() => loaded.load("directory")).toThrow("b.conflist");
    expect(loaded.networks.map(({ name }) => name)).toEqual(["a"]);
  });
});

describe.skipIf(process.platform === "win32")("operations", () => {
  test("need as many networks as asked for", async () => {
    lab.plugin("alpha");
    conflist("a", "alpha");
    const one = networking({ minNetworks: 2 });
    one.load("directory");
    for (const operation of [one.setup("c", "/n"), one.check("c", "/n"), one.status()])
      expect((await failureOf(operation)).code).toBe("not-initialized");
    await one.remove("c"); // takes away what it can, whatever is loaded
  });

  test("setup puts the networks' results together", async () => {
    const result = await twoNetworks().setup("c", "/netns");
    expect(Object.keys(result.interfaces)).toEqual(["eth0", "veth-eth0", "veth-eth1", "eth1"]);
    expect(result.interfaces.eth1).toEqual({
      addresses: [{ address: "10.2.0.2/24" }],
      mac: "02:00:00:00:00:01",
      sandbox: "/netns",
    });
    expect(result.dns).toHaveLength(2);
    expect(result.routes).toHaveLength(2);
    expect(result.raw[0]!.ips[0]!.address).toBe("10.1.0.2/24");
  });

  test("addresses without an interface are the default one's; a number that is none is an error, taken back", async () => {
    lab.plugin("alpha", { ADD: prints({ cniVersion: "1.1.0", ips: [{ address: "10.1.0.2/24" }] }) });
    conflist("a", "alpha");
    const one = networking();
    one.load("directory");
    expect((await one.setup("c", "/n")).interfaces).toEqual({
      eth0: { addresses: [{ address: "10.1.0.2/24" }] },
    });
    await one.remove("c", "/n");
    lab.plugin("alpha", {
      ADD: prints({
        cniVersion: "1.1.0",
        interfaces: [{ name: "x" }],
        ips: [{ interface: 1, address: "10.1.0.2/24" }],
      }),
    });
    expect((await failureOf(one.setup("c", "/n"))).message).toContain("interface number 1 of 1");
    expect(one.attachments()).toEqual({ attachments: [], problems: [] });
  });

  test("capabilities that a config declares and labels reach its plugin", async () => {
    lab.plugin("alpha", { ADD: prints(resultOf("eth0", "10.1.0.2/24")) });
    conflist("a", "alpha", { capabilities: { portMappings: true, ipRanges: true, mine: true } });
    const one = networking();
    one.load("directory");
    const portMappings = [{ hostPort: 8080, containerPort: 80, protocol: "tcp" as const }];
    await one.setup("c", "/n", {
      portMappings,
      ipRanges: [{ subnet: "10.1.0.0/24" }, { subnet: "fd00::/64" }, { subnet: "10.2.0.0/24" }],
      bandwidth: { ingressRate: 1 },
      capabilities: { mine: [1] },
      labels: { IgnoreUnknown: "1", K8S_POD_NAME: "web" },
    });
    const [call] = lab.calls();
    expect(call!.args).toBe("IgnoreUnknown=1;K8S_POD_NAME=web");
    expect(call!.stdin.runtimeConfig).toEqual({
      portMappings,
      ipRanges: [[{ subnet: "10.1.0.0/24" }, { subnet: "10.2.0.0/24" }], [{ subnet: "fd00::/64" }]],
      mine: [1],
    });
  });

  test("a setup that fails on one network is taken back on all; the error names network and code", async () => {
    const both = twoNetworks({ ADD: fails(103, "no room") });
    const events: NetworkingEvent[] = [];
    both.subscribe((event) => events.push(event));
    const error = await failureOf(both.setup("c", "/netns"));
    expect(error.code).toBe("setup-failed");
    expect(error.message).toMatch(/network "b", code 103: .*no room/);
    expect(error.failures.map(({ network }) => network)).toEqual(["b"]);
    expect(
      lab
        .verbs()
        .filter((verb) => verb.startsWith("DEL"))
        .sort(),
    ).toEqual(["DEL alpha", "DEL beta"]);
    expect(both.attachments().attachments).toEqual([]);
    expect(events.map(({ type }) => type)).toEqual(["rolled-back", "failed"]);
  });

  test("without rollback what was attached stays; serially, nothing is tried after a failure", async () => {
    const both = twoNetworks();
    lab.plugin("alpha", { ADD: fails(103, "no room") });
    await failureOf(both.setup("c", "/netns", { rollback: false, serially: true }));
    expect(lab.verbs()).toEqual(["ADD alpha"]);
    await failureOf(both.setup("c", "/netns", { rollback: false }));
    expect(lab.verbs().sort()).toEqual(["ADD alpha", "ADD beta"]);
    expect(both.attachments("c").attachments.map(({ network, failed }) => [network, failed?.verb])).toEqual([
      ["a", "ADD"],
      ["b", undefined],
    ]);
  });

  test("remove goes through all networks and reports every error", async () => {
    const both = twoNetworks({ DEL: fails(5, "disk gone") });
    await both.setup("c", "/netns");
    lab.plugin("alpha", { DEL: fails(7, "not found") });
    const error = await failureOf(both.remove("c", "/netns"));
    expect(error.code).toBe("remove-failed");
    expect(error.failures.map(({ network, error: { code } }) => [network, code])).toEqual([
      ["b", 5],
      ["a", 7],
    ]);
    lab.plugin("alpha");
    lab.plugin("beta");
    await both.remove("c", "/netns");
    expect(both.attachments().attachments).toEqual([]);
  });

  test("remove works from the cache when the config has vanished, and after a restart without any", async () => {
    const both = twoNetworks();
    await both.setup("c", "/netns");
    rmSync(join(configDir, "b.conflist"));
    both.load("directory");
    lab.calls();
    await both.remove("c");
    const calls = () => lab.calls().map(({ plugin, netns }) => [plugin, netns]);
    expect(calls()).toEqual([
      ["alpha", "/netns"],
      ["beta", "/netns"],
    ]);
    await both.setup("c", "/netns");
    lab.calls();
    // The namespace is gone, and its path may be another container's by now (/proc/PID/ns/net).
    await both.remove("c", "");
    expect(calls()).toEqual([["alpha", ""]]);
    await both.setup("d", "/netns");
    await networking().remove("d");
    expect(both.attachments().attachments).toEqual([]);
  });

  test("check stops at the first network that is not as it was", async () => {
    const both = twoNetworks();
    await both.setup("c", "/netns");
    await both.check("c", "/netns");
    lab.plugin("alpha", { CHECK: fails(999, "address gone") });
    expect((await failureOf(both.check("c", "/netns"))).message).toContain(
      'network "a", code 999: address gone',
    );
  });

  test("a setup that hangs ends at its time limit and is taken back", async () => {
    const both = twoNetworks({ ADD: "sleep 30" });
    const begin = performance.now();
    const error = await failureOf(both.setup("c", "/netns", { timeoutMs: 300 }));
    expect(performance.now() - begin).toBeLessThan(10_000);
    expect(error.failures.map(({ network }) => network)).toEqual(["b"]);
    expect(both.attachments().attachments).toEqual([]);
  });

  test("gc keeps the living, takes the rest, also of networks whose config is gone", async () => {
    const both = twoNetworks();
    await both.setup("alive", "/netns");
    await both.setup("dead", "/netns");
    rmSync(join(configDir, "b.conflist"));
    both.load("directory");
    lab.calls();
    const { deleted, kept } = await both.gc(["alive"]);
    const named = (all: typeof deleted) =>
      all.map(({ network, containerId }) => `${network} ${containerId}`).sort();
    expect(named(deleted)).toEqual(["a dead", "b dead"]);
    expect(named(kept)).toEqual(["a alive", "b alive"]);
    const gc = lab.calls().find(({ verb }) => verb === "GC")!;
    expect(gc.stdin["cni.dev/valid-attachments"]).toContainEqual({ containerID: "alive", ifname: "eth0" });
  });

  test("gc can only tell, and can leave networks alone that are not loaded", async () => {
    const both = twoNetworks();
    await both.setup("dead", "/netns");
    rmSync(join(configDir, "b.conflist"));
    both.load("directory");
    lab.calls();
    const named = ({ deleted }: { deleted: { network: string }[] }) => deleted.map(({ network }) => network);
    expect(named(await both.gc([], { dryRun: true }))).toEqual(["a", "b"]);
    expect(named(await both.gc([], { dryRun: true, loadedOnly: true }))).toEqual(["a"]);
    expect(lab.calls()).toEqual([]);
    expect(named(await both.gc([], { loadedOnly: true }))).toEqual(["a"]);
    expect(both.attachments().attachments.map(({ network }) => network)).toEqual(["b"]);
  });

  test("operations on one container wait for each other, those on several do not", async () => {
    const both = twoNetworks();
    const order: string[] = [];
    both.subscribe((event) => "containerId" in event && order.push(`${event.type} ${event.containerId}`));
    lab.plugin("beta", { ADD: `sleep 0.3; ${prints(resultOf("eth1", "10.2.0.2/24"))}` });
    const slow = both.setup("c", "/netns");
    lab.plugin("beta", { ADD: prints(resultOf("eth1", "10.2.0.2/24")) });
    await Promise.all([slow, both.remove("c", "/netns"), both.setup("d", "/netns")]);
    expect(order.indexOf("setup c")).toBeLessThan(order.indexOf("removed c"));
    expect(both.attachments().attachments.every(({ containerId }) => containerId === "d")).toBe(true);
  });

  test("events come as a stream, too, and end with its signal", async () => {
    const both = twoNetworks();
    const end = new AbortController();
    const seen: string[] = [];
    const reading = (async () => {
      for await (const event of both.events(end.signal)) {
        seen.push(event.type);
        if (event.type === "removed") end.abort();
      }
    })();
    await both.setup("c", "/netns");
    await both.remove("c", "/netns");
    await reading;
    expect(seen).toEqual(["setup", "removed"]);
  });
});
