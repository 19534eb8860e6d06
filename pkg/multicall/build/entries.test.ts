import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cnitoolSource, findPlugins, type PluginPackage, programSources } from "./entries.ts";

const root = join(import.meta.dirname, "../../..");

test("finds the plugins in their folders", () => {
  const plugins = findPlugins(root);
  expect(plugins.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["bridge", "host-local", "loopback"]),
  );
  for (const { folder, about } of plugins) {
    expect(existsSync(join(folder, "conf.ts"))).toBe(true);
    expect(about).not.toBe("");
  }
});

test("sees which plugins delegate", () => {
  const delegates = Object.fromEntries(findPlugins(root).map((found) => [found.name, found.delegates]));
  expect(delegates).toMatchObject({ bridge: true, loopback: false, "host-local": false });
});

const plugin = (name: string, kind: Partial<PluginPackage> = {}): PluginPackage => ({
  name,
  packageName: `@tscni/plugin-${name}`,
  about: `does "${name}"`,
  folder: "",
  isIpam: false,
  delegates: false,
  hasCommand: false,
  ...kind,
});
const plugins = [
  plugin("pool", { isIpam: true, hasCommand: true }),
  plugin("wire", { delegates: true }),
  plugin("lo"),
];
const sources = programSources(plugins, "1.2.3");

test("there is a program for each plugin, and one that answers for the rest", () => {
  expect([...sources.keys()]).toEqual(["about", "pool", "wire", "lo", "pool.command"]);
  expect(sources.get("about")).toContain('about("1.2.3", {"pool":"does \\"pool\\""');
});

test("only a plugin that delegates carries the IPAM plugins, loaded on demand by literal names", () => {
  expect(sources.get("wire")).toContain('"pool": () => require("@tscni/plugin-pool")');
  expect(sources.get("wire")).not.toContain("plugin-lo");
  expect(sources.get("lo")).not.toContain("require");
});

test("cnitool knows every plugin's config", () => {
  for (const { packageName } of plugins) expect(cnitoolSource(plugins)).toContain(`"${packageName}/conf"`);
});
