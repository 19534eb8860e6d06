import type { Schema } from "@tscni/conf";
import { BandwidthConf } from "@tscni/plugin-bandwidth/conf";
import { BridgeConf } from "@tscni/plugin-bridge/conf";
import { HostLocalConf } from "@tscni/plugin-host-local/conf";
import { LoopbackConf } from "@tscni/plugin-loopback/conf";
import { TuningConf } from "@tscni/plugin-tuning/conf";
import { makeNode, type TestNamespace, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  call,
  expectError,
  expectNoTrace,
  expectSilence,
  goodConf,
  inParallel,
  type PluginName,
} from "./call.ts";

let node: TestNode;
let ns: TestNamespace;
beforeEach(() => {
  node = makeNode();
  ns = node.container();
});
afterEach(() => node.close());

/** The types that a key takes. Written down from contracts.md, not from the schemas that are under test. */
const text = ["text"];
const number = ["number"];
const flag = ["flag"];
const list = ["list"];
const object = ["object"];
const range = { subnet: text, rangeStart: text, rangeEnd: text, gateway: text };
const common = {
  name: text,
  cniVersion: text,
  type: text,
  capabilities: object,
  args: object,
  runtimeConfig: object,
  ipam: object,
  dns: object,
  "dns.nameservers": list,
  "dns.domain": text,
  "dns.search": list,
  "dns.options": list,
  prevResult: object,
};

const tuned = { sysctl: object, mac: text, promisc: flag, mtu: number, allmulti: flag, txQLen: number };
const rates = { ingressRate: number, ingressBurst: number, egressRate: number, egressBurst: number };
const below = (path: string, keys: Record<string, string[]>) =>
  Object.fromEntries(Object.entries(keys).map(([key, types]) => [`${path}.${key}`, types]));

const expected: Record<PluginName, Record<string, string[]>> = {
  bridge: {
    ...common,
    bridge: text,
    isGateway: flag,
    isDefaultGateway: flag,
    forceAddress: flag,
    mtu: number,
    hairpinMode: flag,
    promiscMode: flag,
    portIsolation: flag,
    vlan: number,
    vlanTrunk: list,
    preserveDefaultVlan: flag,
    enabledad: flag,
    disableContainerInterface: flag,
    ipMasq: flag,
    ipMasqBackend: text,
    macspoofchk: flag,
    "ipam.type": text,
    "args.cni": object,
    "args.cni.mac": text,
    "runtimeConfig.mac": text,
  },
  "host-local": {
    ...common,
    "ipam.type": text,
    ...Object.fromEntries(Object.entries(range).map(([key, types]) => [`ipam.${key}`, types])),
    "ipam.ranges": list,
    "ipam.routes": list,
    "ipam.dataDir": text,
    "ipam.resolvConf": text,
    "ipam.cooldown": number,
    "ipam.reportExhausted": flag,
    "runtimeConfig.ipRanges": list,
    "runtimeConfig.ips": list,
    "args.cni": object,
    "args.cni.ips": list,
  },
  loopback: common,
  tuning: {
    ...common,
    ...tuned,
    ...below("args.cni", tuned),
    "args.cni": object,
    dataDir: text,
    "runtimeConfig.mac": text,
  },
  bandwidth: {
    ...common,
    ...rates,
    ...below("runtimeConfig.bandwidth", rates),
    "runtimeConfig.bandwidth": object,
    latency: number,
  },
};

/** A wrong value of a key may fail even DEL here: without it the reservation cannot be found. */
const needed = ["name", "cniVersion", "type", "ipam", "ipam.type", "ipam.dataDir", "dataDir"];

/** Those who come behind others cannot do without this. */
const behindOthers: readonly PluginName[] = ["tuning", "bandwidth"];

const values: Record<string, unknown> = {
  text: "text",
  number: 7,
  flag: true,
  list: ["text"],
  object: { some: "text" },
};

/** The config with one key, given by its path, set. */
function withKey(conf: Record<string, unknown>, path: string, value: unknown): Record<string, unknown> {
  const [key, ...rest] = path.split(".") as [string, ...string[]];
  const inner = (conf[key] ?? {}) as Record<string, unknown>;
  return { ...conf, [key]: rest.length === 0 ? value : withKey(inner, rest.join("."), value) };
}

const schemas: Record<PluginName, Schema> = {
  bridge: BridgeConf,
  "host-local": HostLocalConf,
  loopback: LoopbackConf,
  tuning: TuningConf,
  bandwidth: BandwidthConf,
};

/** The paths of all keys that a schema declares, down to lists. */
function pathsOf(schema: Schema, prefix = ""): string[] {
  if (schema.wrapped) return pathsOf(schema.wrapped, prefix);
  return Object.entries(schema.entries ?? {}).flatMap(([key, entry]) => {
    const path = prefix === "" ? key : `${prefix}.${key}`;
    return [path, ...pathsOf(entry, path)];
  });
}

describe.each(Object.keys(expected) as PluginName[])("%s", (type) => {
  test("the table here has every key that the schema declares", () => {
    const declared = pathsOf(schemas[type]).filter((path) => !path.startsWith("cni.dev/"));
    expect(declared.sort()).toEqual(Object.keys(expected[type]).sort());
  });

  const wrong = Object.entries(expected[type]).flatMap(([path, types]) =>
    Object.keys(values)
      .filter((kind) => !types.includes(kind))
      .map((kind) => ({ path, value: values[kind] })),
  );

  test("every key with every wrong type fails ADD with code 6, by name, and leaves nothing", async () => {
    await expectNoTrace(
      node,
      () =>
        inParallel(wrong, async ({ path, value }) => {
          const what = `${path}: ${JSON.stringify(value)}`;
          const outcome = await call(node, type, "ADD", withKey(goodConf(type, node), path, value), {
            netns: ns,
          });
          const { code, msg } = expectError(outcome, what);
          expect({ code, msg }, what).toEqual({ code: 6, msg: expect.stringContaining(path) });
        }),
      { bridge: false },
    );
    expect(ns.run("ip", "-o", "link").trim().split("\n"), "only lo").toHaveLength(1);
  });

  test("DEL warns by name of what it does not need", async () => {
    const harmless = wrong.filter(({ path }) => !needed.includes(path));
    await inParallel(harmless, async ({ path, value }) => {
      const what = `${path}: ${JSON.stringify(value)}`;
      const outcome = await call(node, type, "DEL", withKey(goodConf(type, node), path, value), {
        netns: ns,
      });
      expectSilence(outcome, `${what}: ${outcome.stdout}`);
      expect(outcome.stderr, what).toContain(`ignoring ${path}`);
    });
  });

  test("keys of a name that nobody knows, and null for every key that may be absent, are no error", async () => {
    const optional = Object.keys(expected[type]).filter(
      (path) =>
        !needed.concat(["ipam.subnet"]).includes(path) &&
        !(path === "prevResult" && behindOthers.includes(type)),
    );
    await inParallel([...optional.entries()], async ([i, path]) => {
      const conf = { ...withKey(goodConf(type, node), path, null), unheardOf: { a: [1] } };
      const attachment = { netns: ns, id: `c${i}`, ifName: `eth${i}` };
      const { status, stdout } = await call(node, type, "ADD", conf, attachment);
      expect(status, `${path}: null: ${stdout}`).toBe(0);
      expectSilence(await call(node, type, "DEL", conf, attachment), `${path}: null`);
    });
  });
});

describe("values of the right type that are wrong are refused with code 7, by name", () => {
  const cases: [PluginName, string, unknown[]][] = [
    ["bridge", "mtu", [-1, 1.5, 1e300]],
    ["bridge", "vlan", [-1, 4095, 1.5]],
    ["bridge", "vlanTrunk", [[{ id: 0 }], [{ id: 4095 }], [{ minID: 5 }], [{ minID: 9, maxID: 5 }], [{}]]],
    ["bridge", "runtimeConfig.mac", ["x", "00:11:22:33:44", "00:11:22:33:44:5g"]],
    ["bridge", "args.cni.mac", ["x"]],
    ["host-local", "ipam.subnet", ["10.77.0.0", "10.77.0.0/33", "x", "10.77.0.300/24", "10.77.0.0/24/1"]],
    ["host-local", "ipam.rangeStart", ["x", "10.77.0.300"]],
    ["host-local", "ipam.cooldown", [-1, 1.5]],
    ["host-local", "ipam.ranges", [[[{ subnet: "x" }]]]],
    ["host-local", "ipam.routes", [[{ dst: "10.0.0.0" }], [{ dst: "0.0.0.0/0", gw: "x" }]]],
    ["host-local", "runtimeConfig.ips", [["x"]]],
    ["tuning", "mac", ["x", "00:11:22:33:44:5g", "01:00:00:00:00:00"]],
    ["tuning", "mtu", [-1, 1.5, 1e300]],
    ["tuning", "args.cni.txQLen", [-1, 1.5, 2 ** 32]],
    ["tuning", "sysctl", [{ "kernel.panic": "1" }, { "/etc/passwd": "1" }, { "net\0x": "1" }, { net: "1" }]],
    ["bandwidth", "ingressRate", [-1, 1.5, 1e300]],
    ["bandwidth", "egressBurst", [-1, 1.5]],
    ["bandwidth", "latency", [0, -1, 1e9]],
  ];
  test.each(cases)("%s %s", async (type, path, wrong) => {
    await expectNoTrace(
      node,
      async () => {
        for (const value of wrong) {
          const what = `${path}: ${JSON.stringify(value)}`;
          const conf = withKey(goodConf(type, node), path, value);
          const { code, msg } = expectError(await call(node, type, "ADD", conf, { netns: ns }), what);
          const key = path.split(".").at(-1)!;
          expect({ code, msg }, what).toEqual({ code: 7, msg: expect.stringMatching(new RegExp(key, "i")) });
        }
      },
      { bridge: false },
    );
  });
});
