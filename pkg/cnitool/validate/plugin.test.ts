import { expect, test } from "vitest";
import type { Finding, Io } from "../io.ts";
import { checkPlugin, typesOf } from "./plugin.ts";

const network = { name: "n", cniVersion: "1.1.0" };

test.each([
  { type: "x" },
  { type: "x", anything: { goes: 1 }, dns: { nameservers: ["1.1.1.1"] } },
  { Type: "x", Capabilities: { mac: true, "org.example/own": false }, ipam: {} },
  { type: "x", ipam: { type: "host-local" }, args: { cni: {} } },
])("%j: nothing wrong", (raw) => expect(checkPlugin(raw, network, undefined)).toEqual([]));

test.each([
  ["7", "", "error", "7 is not an object"],
  ["{}", "type", "error", "missing: expected the plugin's name"],
  ['{"type":""}', "type", "error", "missing"],
  ['{"type":3}', "type", "error", "3 is not a string"],
  ['{"type":"../../bin/sh"}', "type", "error", "a path is not allowed"],
  ['{"type":"x","ipam":{"type":"a/b"}}', "ipam.type", "error", "a path is not allowed"],
  ['{"type":"x","ipam":{"subnet":"10.0.0.0/8"}}', "ipam.type", "error", "missing"],
  ['{"type":"x","ipam":[]}', "ipam", "error", "is not an object"],
  ['{"type":"x","dns":{"nameservers":"1.1.1.1"}}', "dns.nameservers", "error", '"1.1.1.1" is not a list'],
  ['{"type":"x","capabilities":{"mac":"yes"}}', "capabilities.mac", "error", '"yes" is not true or false'],
  [
    '{"type":"x","capabilities":{"portMapping":true}}',
    "capabilities.portMapping",
    "warning",
    '"portMappings"?',
  ],
  ['{"type":"x","capabilites":{"mac":true}}', "capabilites", "warning", 'did you mean "capabilities"?'],
  ['{"type":"x","prevResult":{}}', "prevResult", "warning", "the runtime fills this in"],
  ['{"type":"x","name":"m"}', "name", "warning", '"m" is replaced by the network\'s "n"'],
])("%s", (text, path, level, message) => {
  const found = checkPlugin(JSON.parse(text), network, undefined);
  expect(found).toContainEqual({ path, level, message: expect.stringContaining(message) });
  expect(new Set(found.map((f) => f.path))).toEqual(new Set([path]));
});

test("a plugin's own schema checks its config as it would get it, its IPAM plugin's the rest", () => {
  const asked: Record<string, unknown> = {};
  const schemas: Io["schemas"] = (type) => ({
    checkConf(raw): Finding[] {
      asked[type] = raw;
      return [{ path: `${type}-key`, message: "wrong", level: "error" }];
    },
  });
  const found = checkPlugin({ type: "bridge", mtu: 1, ipam: { type: "host-local", x: 1 } }, network, schemas);
  expect(found.map((f) => f.path).toSorted()).toEqual(["bridge-key", "host-local-key"]);
  expect(asked).toEqual({
    bridge: { type: "bridge", mtu: 1, ipam: { type: "host-local", x: 1 }, ...network },
    "host-local": { type: "host-local", ipam: { type: "host-local", x: 1 }, ...network },
  });
});

test("the executables that a config needs", () => {
  expect(typesOf({ Type: "a", ipam: { type: "b" } })).toEqual([
    { path: "type", type: "a" },
    { path: "ipam.type", type: "b" },
  ]);
  expect(typesOf({ type: "../x", ipam: null })).toEqual([]);
});
