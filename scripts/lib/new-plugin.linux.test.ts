import { spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { root, temporaryFolder } from "@tscni/test-support";
import { afterAll, beforeAll, expect, test } from "vitest";

const copy = temporaryFolder();
afterAll(copy.remove);

function run(...command: string[]): string {
  const [program, ...args] = command;
  const { status, stdout, stderr } = spawnSync(program!, args, { cwd: copy.path, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command.join(" ")}: ${status}\n${stdout}${stderr}`);
  return stdout;
}

/** A copy of the tree, whose node_modules leads to the copy's own packages and to the root's other ones. */
beforeAll(() => {
  const list = spawnSync("git", ["-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  });
  expect(list.status, list.stderr).toBe(0);
  for (const file of list.stdout.split("\n").filter(Boolean)) {
    mkdirSync(join(copy.path, dirname(file)), { recursive: true });
    cpSync(join(root, file), join(copy.path, file), { force: true });
  }
  const modules = join(root, "node_modules");
  mkdirSync(join(copy.path, "node_modules/@tscni"), { recursive: true });
  for (const name of readdirSync(modules)) {
    if (name !== "@tscni") symlinkSync(join(modules, name), join(copy.path, "node_modules", name));
  }
  for (const name of readdirSync(join(modules, "@tscni"))) {
    symlinkSync(readlinkSync(join(modules, "@tscni", name)), join(copy.path, "node_modules/@tscni", name));
  }
  mkdirSync(join(copy.path, ".cache"));
  for (const name of ["bun", "engine"]) // what the executables are built from
    symlinkSync(join(root, ".cache", name), join(copy.path, ".cache", name));
});

const made = [
  ["main", "my-link2"],
  ["ipam", "pool"],
  ["meta", "zeta"],
] as const;

test("new plugins type-check, keep the rules, pass their tests and are in the executable", () => {
  for (const [kind, name] of made) run("scripts/new-plugin", name, "--kind", kind);
  const folders = made.map(([kind, name]) => `plugins/${kind}/${name}`);
  run(
    "node_modules/.bin/biome",
    "check",
    "--vcs-enabled=false",
    ...folders,
    "linux_only",
    "package-lock.json",
  );
  const include = folders.map((folder) => `${folder}/*.ts`);
  writeFileSync(
    join(copy.path, "tsconfig.new.json"),
    JSON.stringify({ extends: "./tsconfig.json", include }),
  );
  run("node_modules/.bin/tsc", "-p", "tsconfig.new.json");
  const { stderr } = spawnSync("node", ["scripts/lib/layers.mjs"], { cwd: copy.path, encoding: "utf8" });
  expect(stderr.split("\n").filter((line) => folders.some((folder) => line.startsWith(folder)))).toEqual([]);
  run("node", "scripts/lib/linux-only.mjs", "check");

  // They delegate to host-local in dist/bin, which is built first.
  rmSync(join(copy.path, "dist"), { recursive: true, force: true });
  run("sh", "-c", "cd pkg/multicall && ../../scripts/bun build.ts");
  const reporters = ["--reporter=default", "--reporter=json", "--outputFile.json=report.json"];
  run("scripts/bun", "--bun", "node_modules/vitest/vitest.mjs", "run", ...reporters, ...folders);
  const report = JSON.parse(readFileSync(join(copy.path, "report.json"), "utf8"));
  expect(report).toMatchObject({ success: true, numFailedTests: 0, numPendingTests: 0 });
  expect(report.testResults).toHaveLength(made.length);
  for (const [, name] of made)
    expect(JSON.parse(run("env", "CNI_COMMAND=VERSION", `dist/bin/${name}`)).supportedVersions).toContain(
      "1.1.0",
    );
});

test("docs/tutorial.md: its plugin is as it says", () => {
  const page = readFileSync(join(root, "docs/tutorial.md"), "utf8");
  run("scripts/new-plugin", "label", "--kind", "meta");
  const blocks = [...page.matchAll(/```ts\n\/\/ (\S+)\n([^`]*(?:`[^`]+`[^`]*)*)```/g)];
  expect(blocks.map(([, path]) => path)).toEqual(
    ["conf.ts", "label.ts", "label.linux.test.ts"].map((name) => `plugins/meta/label/${name}`),
  );
  for (const [, path, text] of blocks) writeFileSync(join(copy.path, path!), text!);
  run("node_modules/.bin/biome", "check", "--vcs-enabled=false", "plugins/meta/label");
  const tsconfig = { extends: "./tsconfig.json", include: ["plugins/meta/label/*.ts"] };
  writeFileSync(join(copy.path, "tsconfig.new.json"), JSON.stringify(tsconfig));
  run("node_modules/.bin/tsc", "-p", "tsconfig.new.json");
  run("scripts/bun", "--bun", "node_modules/vitest/vitest.mjs", "run", "plugins/meta/label");

  const conflist = /```json\n([^`]+)```/.exec(page)![1]!;
  writeFileSync(join(copy.path, "labelled.conflist"), conflist);
  run("sh", "-c", "cd pkg/multicall && ../../scripts/bun build.ts");
  const script = [
    "mount -t tmpfs t /run && mkdir -p /run/netns /var/lib/cni && mount -t tmpfs t /var/lib/cni",
    "export PATH=$PWD/dist/bin:$PATH CNI_PATH=$PWD/dist/bin NETCONFPATH=$PWD",
    "ip netns add blue && cnitool add labelled /run/netns/blue >/dev/null",
    "ip -n blue link show eth0 && cnitool check labelled /run/netns/blue && cnitool del labelled /run/netns/blue",
  ].join(" && ");
  expect(run("unshare", "-nm", "sh", "-c", script)).toContain("alias the lab's network");
});

test("a name that is taken or no name is refused, and nothing made", () => {
  const plugins = () => readdirSync(join(copy.path, "plugins"), { recursive: true }).sort();
  const before = plugins();
  expect(() => run("scripts/new-plugin", "bridge", "--kind", "meta")).toThrow(
    /plugins\/main\/bridge is there/,
  );
  expect(() => run("scripts/new-plugin", "../evil")).toThrow(/is no name for a plugin/);
  expect(() => run("scripts/new-plugin", "fine", "--kind", "other")).toThrow(/not one of main, ipam, meta/);
  expect(plugins()).toEqual(before);
});
