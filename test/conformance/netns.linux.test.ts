import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hostState, makeNode, run, type TestNode, temporaryFolder } from "@tscni/test-support";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, expectError, expectNoTrace, expectSilence, goodConf, type PluginName } from "./call.ts";

let node: TestNode;
const folder = temporaryFolder();
const at = (name: string) => join(folder.path, name);
beforeAll(() => {
  node = makeNode();
  writeFileSync(at("file"), "not a namespace");
  mkdirSync(at("folder"));
  run("mkfifo", at("pipe"));
});
afterAll(() => {
  node.close();
  folder.remove();
});

const places: [string, () => string][] = [
  ["missing", () => "/run/netns/tscni-no-such"],
  ["below a file", () => at("file/x")],
  ["a plain file", () => at("file")],
  ["a folder", () => at("folder")],
  ["a pipe that nobody writes to", () => at("pipe")],
  ["a device", () => "/dev/null"],
  ["a mount namespace", () => "/proc/self/ns/mnt"],
  ["longer than a path can be", () => `/${"x".repeat(5000)}`],
  ["a relative path to nowhere", () => "../../../../no/such"],
];

describe.each(["bridge", "loopback"] as PluginName[])("%s", (type) => {
  test.each(places)("a namespace that is %s: ADD and CHECK say 8, DEL succeeds", async (what, netns) => {
    await expectNoTrace(node, async () => {
      const conf = goodConf(type, node);
      const { code, msg } = expectError(
        await call(node, type, "ADD", conf, { netns: netns() }),
        `ADD, ${what}`,
      );
      expect({ code, msg }).toEqual({ code: 8, msg: expect.stringContaining("failed to open netns") });
      const prevResult = { interfaces: [{ name: "eth0", sandbox: netns() }] };
      // CHECK of the lease comes first and misses it.
      const checked = { ...conf, ipam: undefined, prevResult };
      expect(expectError(await call(node, type, "CHECK", checked, { netns: netns() }), "CHECK").code).toBe(8);
      for (const again of ["DEL", "DEL again"])
        expectSilence(await call(node, type, "DEL", conf, { netns: netns() }), again);
    });
    expect(hostState({ folders: [folder.path] }).files, "the place itself").toMatchObject({
      [at("file")]: "not a namespace",
    });
  });

  test("a DEL without a namespace succeeds", async () => {
    for (const netns of [undefined, ""])
      expectSilence(await call(node, type, "DEL", goodConf(type, node), { netns }), `netns ${netns}`);
  });

  test("the plugin's own namespace is refused before anything is done, and allowed by override", async () => {
    for (const netns of ["/proc/self/ns/net", node.host.path])
      for (const verb of ["ADD", "DEL"])
        await expectNoTrace(node, async () => {
          const outcome = await call(node, type, verb, goodConf(type, node), { netns });
          expect(expectError(outcome, verb)).toMatchObject({
            code: 8,
            msg: "plugin's netns and netns from CNI_NETNS should not be the same",
          });
        });
    const env = { CNI_NETNS_OVERRIDE: "true" };
    expectSilence(
      await call(node, type, "DEL", goodConf("loopback", node), { netns: "/no/such", env }),
      "DEL",
    );
  });
});

test("host-local does not look at the namespace", async () => {
  await expectNoTrace(node, async () => {
    const conf = goodConf("host-local", node);
    const netns = at("file");
    await call(node, "host-local", "DEL", conf, { netns });
  });
});
