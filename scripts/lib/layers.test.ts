import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const script = join(import.meta.dirname, "layers.mjs");
const linuxOnly = join(import.meta.dirname, "linux-only.mjs");

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "tscni-layers-"));
  write("package.json", JSON.stringify({ workspaces: ["pkg/*", "plugins/main/*"] }));
  addPackage("pkg/types", "@tscni/types", [], "export const a = 1;");
  addPackage("pkg/sys", "@tscni/sys", [], 'import { dlopen } from "bun:ffi";');
  addPackage("plugins/main/one", "@tscni/plugin-one", ["@tscni/types"], 'import { a } from "@tscni/types";');
  addPackage("plugins/main/two", "@tscni/plugin-two", ["@tscni/sys"], 'import * as s from "@tscni/sys";');
});
afterEach(() => rmSync(root, { recursive: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

function addPackage(path: string, name: string, dependencies: string[], source: string): void {
  const versions = Object.fromEntries(dependencies.map((dependency) => [dependency, "0.1.0"]));
  write(`${path}/package.json`, JSON.stringify({ name, dependencies: versions }));
  write(`${path}/index.ts`, source);
}

/** What the script prints about the repository in `root`; "" when nothing is wrong. */
function problems(command: string, ...args: string[]): string {
  const { status, stderr } = spawnSync(process.execPath, [command, ...args], { encoding: "utf8" });
  expect(status).toBe(stderr === "" ? 0 : 1);
  return stderr;
}

test("imports of this repository go downward", () => {
  expect(problems(script)).toBe("");
});

test("what goes downward is fine, and tests may import anything", () => {
  write("pkg/types/index.test.ts", 'import "@tscni/plugin-one";');
  expect(problems(script, root)).toBe("");
});

test.each([
  ["an import upward", 'import "@tscni/plugin-one";', ["@tscni/plugin-one"], "is above it"],
  ["an import that no dependency declares", 'export * from "@tscni/sys";', [], "not among its dependencies"],
  ["a path into another package", 'import { b } from "../sys/index.ts";', [], "lies outside"],
  ["a package that does not exist", 'const x = require("@tscni/gone");', [], "is not a package"],
])("%s is found", (_, source, dependencies, message) => {
  addPackage("pkg/types", "@tscni/types", dependencies, source);
  expect(problems(script, root)).toContain(message);
});

test("a plugin that imports another is found", () => {
  addPackage(
    "plugins/main/two",
    "@tscni/plugin-two",
    ["@tscni/plugin-one"],
    'import one from "@tscni/plugin-one/conf";',
  );
  expect(problems(script, root)).toBe("plugins/main/two/index.ts: @tscni/plugin-one is another plugin\n");
});

test("a circle within a layer is found", () => {
  addPackage("pkg/types", "@tscni/types", ["@tscni/addr"], 'import "@tscni/addr";');
  addPackage("pkg/addr", "@tscni/addr", ["@tscni/types"], 'import "@tscni/types";');
  expect(problems(script, root)).toContain("@tscni/addr -> @tscni/types -> @tscni/addr: a circle");
});

test("a package without a layer is found", () => {
  addPackage("pkg/new", "@tscni/new", [], "");
  expect(problems(script, root)).toBe("pkg/new: is in no layer\n");
});

test("an import in a comment is none", () => {
  addPackage(
    "pkg/types",
    "@tscni/types",
    [],
    '/**\n * import x from "@tscni/skel";\n */\n// from "@tscni/sys"\n',
  );
  expect(problems(script, root)).toBe("");
});

test("linux_only is what the packages of this repository say", () => {
  expect(problems(linuxOnly, "check")).toBe("");
});

test("linux_only without a package that reaches the kernel, or with one that does not, is found", () => {
  write("linux_only", "pkg/sys\npkg/types\n");
  expect(problems(linuxOnly, "check", root)).toBe(
    "linux_only lacks plugins/main/two\nlinux_only has pkg/types, which is portable\n",
  );
  write("linux_only", "pkg/sys\nplugins/main/two\n");
  expect(problems(linuxOnly, "check", root)).toBe("");
});

test("vitest skips nothing on Linux, and elsewhere what linux_only lists", () => {
  write("linux_only", "pkg/sys\n");
  const excludes = execFileSync(process.execPath, [linuxOnly, "excludes", root], { encoding: "utf8" });
  expect(excludes.trim()).toBe(process.platform === "linux" ? "" : "--exclude=pkg/sys/**");
});
