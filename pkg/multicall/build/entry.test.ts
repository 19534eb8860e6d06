import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { entrySource, findPlugins } from "./entry.ts";

const root = join(import.meta.dirname, "../../..");
const plugins = findPlugins(root);

test("finds the plugins in their folders", () => {
  expect(plugins.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["bridge", "host-local", "loopback"]),
  );
  for (const { folder, about } of plugins) {
    expect(existsSync(join(folder, "conf.ts"))).toBe(true);
    expect(about).not.toBe("");
  }
});

test("the entry requires every module by a literal name behind a function", () => {
  const source = entrySource(plugins, "1.2.3");
  for (const { packageName } of plugins) expect(source).toContain(`() => require("${packageName}")`);
  expect(source.match(/require\((?!")/g)).toBeNull();
  expect(source).toContain('version: "1.2.3"');
});
