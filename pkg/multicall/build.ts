/**
 * Builds the executable: `build.ts [--target NAME]...`. For this machine it leaves, at the root of the
 * repository, dist/bin with `tscni`, a link to it for every plugin and `cnitool`, and dist/schema with the JSON
 * Schemas of their configs; for another target dist/NAME/bin.
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
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { baseBinary, hostTarget, run, type Target, targets } from "./build/base.ts";
import { entrySources, findPlugins } from "./build/entries.ts";
import { writeSchemas } from "./build/schemas.ts";

const here = import.meta.dirname;
const root = join(here, "../..");

/** What each flag is for is told in docs/decisions/0001-one-bun-executable.md. */
const flags = [
  "--compile",
  "--bytecode",
  "--minify",
  "--compile-jit-policy=100", // a plugin ends before optimised code would pay
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
  "--no-compile-autoload-tsconfig",
  "--no-compile-autoload-package-json",
  // A module that is looked for by a computed name could be found in the working directory. Ours are inside.
  "--allow-unresolved=/$bunfs/root/*",
];

/** Compiles the programs for one target into `<folder>/tscni`, which appears whole or not at all. */
function compile(entries: readonly string[], target: Target, folder: string): void {
  const work = mkdtempSync(join(folder, ".build-"));
  try {
    const outfile = join(work, "tscni"); // the name that stack traces show
    // Also decides what process.arch is: the bundler puts its value in.
    const machine = `--target=bun-${target}`;
    const base = `--compile-executable-path=${baseBinary(root, target)}`;
    // The programs are looked for by their paths below the root (main.ts), which Bun would otherwise guess.
    const names = ["--root", dirname(entries[0]!), "--outfile", outfile];
    run([process.execPath, "build", ...flags, machine, base, ...entries, ...names], here);
    renameSync(outfile, join(folder, "tscni"));
  } finally {
    rmSync(work, { recursive: true });
  }
}

/** Makes the folder hold the links and the executable, and nothing else. */
function link(folder: string, names: readonly string[]): void {
  for (const old of readdirSync(folder)) if (old !== "tscni") rmSync(join(folder, old), { recursive: true });
  for (const name of names) symlinkSync("tscni", join(folder, name));
}

function buildFor(target: Target, entries: readonly string[], names: readonly string[]): void {
  const folder = join(root, "dist", target === hostTarget() ? "bin" : `${target}/bin`);
  mkdirSync(folder, { recursive: true });
  compile(entries, target, folder);
  link(folder, names);
}

/** Writes the sources of the programs; returns their paths, that of the one that starts first. */
function writeEntries(sources: ReadonlyMap<string, string>): string[] {
  const folder = join(here, "dist");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  return [...sources].map(([name, source]) => {
    const path = join(folder, `${name}.ts`);
    writeFileSync(path, `// Written by pkg/multicall/build.ts.\n${source}`);
    return path;
  });
}

const { values } = parseArgs({ options: { target: { type: "string", multiple: true } } });
const wanted = values.target ?? [hostTarget()];
const unknown = wanted.find((name) => !Object.hasOwn(targets, name));
if (unknown !== undefined) {
  throw new Error(`--target ${unknown}: is not one of ${Object.keys(targets).join(", ")}`);
}

const plugins = findPlugins(root);
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const entries = writeEntries(entrySources(plugins, version));
const links = [...plugins.map(({ name }) => name), "cnitool"];
for (const target of wanted) buildFor(target as Target, entries, links);
await writeSchemas(plugins, join(root, "dist/schema"));
