import { mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { findGoBin, makeNamespace, run, type TestNamespace } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Libcni, NetworkConfigList, RuntimeConf } from "./index.ts";
import { fails, Lab, listOf, runtime } from "./testing/lab.ts";

const gobin = findGoBin("bridge");
const bridge = "tscnilc0";

let lab: Lab;
let libcni: Libcni;
let rt: RuntimeConf;
let container: TestNamespace;
beforeEach(() => {
  lab = new Lab();
  libcni = lab.libcni({ path: [lab.bin, dirname(gobin!)] });
  mkdirSync(join(lab.dir, "ipam"));
  container = makeNamespace();
  rt = runtime({ netns: container.path });
});
afterEach(() => {
  container.close();
  lab.close();
  try {
    run("ip", "link", "del", bridge);
  } catch {} // A test that never made it.
});

const ipam = () => ({ type: "host-local", subnet: "10.213.7.0/24", dataDir: join(lab.dir, "ipam") });
const network = (...more: string[]): NetworkConfigList =>
  listOf([{ type: "bridge", bridge, isGateway: true, ipam: ipam() }, ...more]);
const links = () =>
  (JSON.parse(container.run("ip", "-j", "link")) as { ifname: string }[]).map(({ ifname }) => ifname);
/** The addresses that host-local holds. */
const held = () => readdirSync(join(lab.dir, "ipam", "net1")).filter((name) => name.startsWith("10."));

describe.skipIf(gobin === undefined)("Go's bridge and host-local", () => {
  test("ADD, CHECK, DEL", async () => {
    const list = network();
    const result = await libcni.addNetworkList(list, rt);
    expect(result.ips).toEqual([{ interface: 2, address: "10.213.7.2/24", gateway: "10.213.7.1" }]);
    expect(container.run("ip", "-4", "-br", "addr", "show", "eth0")).toContain("10.213.7.2/24");
    await libcni.checkNetworkList(list, rt);
    container.run("ip", "addr", "flush", "dev", "eth0");
    await expect(libcni.checkNetworkList(list, rt)).rejects.toThrow("10.213.7.2");
    await libcni.delNetworkList(list, rt);
    expect(links()).toEqual(["lo"]);
    expect(held()).toEqual([]);
    await libcni.delNetworkList(list, runtime({ netns: "" }));
  });

  test("a chain whose last plugin fails in ADD and in every DEL holds no address", async () => {
    lab.plugin("broken", { ADD: fails(7, "no"), DEL: fails(7, "no") });
    const list = network("broken");
    await expect(libcni.addNetworkList(list, rt)).rejects.toThrow("no");
    expect(held()).toEqual(["10.213.7.2"]);
    await expect(libcni.delNetworkList(list, rt)).rejects.toThrow('plugin type="broken" failed (delete): no');
    expect(held()).toEqual([]);
    expect(links()).toEqual(["lo"]);
    lab.plugin("broken");
    expect((await libcni.gcNetworkList(list)).deleted).toHaveLength(1);
    expect(libcni.getCachedAttachments()).toEqual([]);
  });

  test("with rollback, the failed ADD leaves nothing", async () => {
    lab.plugin("broken", { ADD: fails(7, "no") });
    await expect(libcni.addNetworkList(network("broken"), rt, { rollback: true })).rejects.toThrow(
      "rolled back",
    );
    expect(held()).toEqual([]);
    expect(links()).toEqual(["lo"]);
    expect(libcni.getCachedAttachments()).toEqual([]);
  });

  test("a pool without a free address comes with a hint", async () => {
    const full = { ...ipam(), rangeStart: "10.213.7.2", rangeEnd: "10.213.7.2" };
    const list = listOf([{ type: "bridge", bridge, ipam: full }]);
    await libcni.addNetworkList(list, rt);
    const other = libcni.addNetworkList(list, { ...rt, containerId: "c2", ifName: "eth1" });
    await expect(other).rejects.toThrow(
      /no IP addresses available in range set[\s\S]*what to do: every address is reserved/,
    );
    await libcni.delNetworkList(list, rt);
  });
});
