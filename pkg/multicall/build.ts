/**
 * Builds the executables: `build.ts [--target NAME]... [--out FOLDER]`. For this machine it leaves, at the root of the
 * repository, dist/bin with `tscni`, a link to it for every plugin, and `cnitool`, and dist/schema with the JSON Schemas
 * of the plugins' configs; for another target dist/NAME/bin. `--out` names another folder than dist.
 */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { compileProgram, linkExecutable } from "@tscni/engine";
import { baseBinary, hostTarget, run, type Target, targets } from "./build/base.ts";
import { cnitoolSource, findPlugins, type PluginPackage, programSources } from "./build/entries.ts";
import { writeSchemas } from "./build/schemas.ts";

const here = import.meta.dirname;
const root = join(here, "../..");

/** What each flag is for is told in docs/decisions/0001-one-bun-executable.md. */
const bunFlags = [
  "--compile",
  "--bytecode",
  "--minify",
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
  "--no-compile-autoload-tsconfig",
  "--no-compile-autoload-package-json",
];

/** Compiles cnitool by Bun. */
function compileCnitool(entry: string, target: Target, outfile: string): void {
  // Also decides what process.arch is: the bundler puts its value in.
  const machine = `--target=bun-${target}`;
  const base = `--compile-executable-path=${baseBinary(root, target)}`;
  run([process.execPath, "build", ...bunFlags, machine, base, entry, "--outfile", outfile], here);
}

/** The same bytecode serves every target. */
async function compilePlugins(sources: ReadonlyMap<string, string>): Promise<Map<string, string>> {
  const compiled = [...sources].map(async ([name, source]) => {
    const path = await compileProgram(name, writeEntry(name, source), entries);
    return [name, path] as const;
  });
  return new Map(await Promise.all(compiled));
}

/** Makes the folder hold the executables and the links, and nothing else. Each appears whole or not at all. */
async function buildFor(target: Target, programs: ReadonlyMap<string, string>): Promise<void> {
  const folder = join(out, target === hostTarget() ? "bin" : `${target}/bin`);
  mkdirSync(folder, { recursive: true });
  const work = mkdtempSync(join(out, ".build-"));
  try {
    compileCnitool(writeEntry("cnitool", cnitoolSource(plugins)), target, join(work, "cnitool"));
    await linkExecutable(
      target.startsWith("linux-arm64") ? "linux-arm64" : "linux-x64",
      programs,
      join(work, "tscni"),
    );
    for (const name of ["cnitool", "tscni"]) renameSync(join(work, name), join(folder, name));
  } finally {
    rmSync(work, { recursive: true });
  }
  link(folder, plugins);
}

function link(folder: string, links: readonly PluginPackage[]): void {
  const keep = ["tscni", "cnitool"];
  for (const old of readdirSync(folder))
    if (!keep.includes(old)) rmSync(join(folder, old), { recursive: true });
  for (const { name } of links) symlinkSync("tscni", join(folder, name));
}

/** Writes the source of a program; returns its path. */
function writeEntry(name: string, source: string): string {
  const path = join(entries, `${name}.ts`);
  writeFileSync(path, `// Written by pkg/multicall/build.ts.\n${source}`);
  return path;
}

const { values } = parseArgs({
  options: {
    target: { type: "string", multiple: true },
    out: { type: "string", default: join(root, "dist") },
  },
});
const out = values.out;
const wanted = values.target ?? [hostTarget()];
const unknown = wanted.find((name) => !Object.hasOwn(targets, name));
if (unknown !== undefined) {
  throw new Error(`--target ${unknown}: is not one of ${Object.keys(targets).join(", ")}`);
}

// Within the package, so that the sources find what they import.
const entries = mkdtempSync(join(here, ".build-"));
const plugins = findPlugins(root);
try {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const programs = await compilePlugins(programSources(plugins, version));
  for (const target of wanted) await buildFor(target as Target, programs);
  await writeSchemas(plugins, join(out, "schema"));
} finally {
  rmSync(entries, { recursive: true });
}
