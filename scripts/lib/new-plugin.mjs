/** `scripts/new-plugin`: copies a template under a new name and enters it where packages are listed. */

import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { linuxOnly, linuxOnlyByPackages } from "./linux-only.mjs";

const kinds = ["main", "ipam", "meta"];

const help = `Usage: scripts/new-plugin NAME [--kind main|ipam|meta]

Makes plugins/KIND/NAME: a plugin with all five verbs that builds and passes its own test, to be changed from there.

  main  makes an interface in a container (a veth pair)
  ipam  hands out addresses (one from the config)
  meta  changes what plugins before it made (an interface's MTU)
`;

/**
 * Makes the package and lists it in linux_only, package-lock.json (which npm ci insists on) and the executable's
 * dependencies. The lock is edited rather than made anew, for which npm would need the registry.
 * @returns {string} the new folder, relative to the root
 */
export function newPlugin(root, name, kind) {
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name))
    throw new Error(`"${name}" is no name for a plugin: lower-case letters, digits and single hyphens`);
  if (!kinds.includes(kind)) throw new Error(`--kind ${kind}: is not one of ${kinds.join(", ")}`);
  const taken = kinds.map((other) => `plugins/${other}/${name}`).find((path) => existsSync(join(root, path)));
  if (taken !== undefined) throw new Error(`${taken} is there already`);

  const folder = `plugins/${kind}/${name}`;
  copyTemplate(join(root, "scripts/templates", kind), join(root, folder), name);
  const own = readJson(join(root, folder, "package.json"));
  enter(root, folder, own);
  format(root, folder);
  return folder;
}

/** Copies a template: "widget" is the plugin's name in it, "Widget" begins that of its config. */
function copyTemplate(from, to, name) {
  const pascal = name.replaceAll(/(?:^|-)([a-z0-9])/g, (_, letter) => letter.toUpperCase());
  mkdirSync(to, { recursive: true });
  for (const file of readdirSync(from)) {
    const text = readFileSync(join(from, file), "utf8")
      // A name with a hyphen is none for a variable.
      .replaceAll(/(import |\(|export default )widget\b/g, (_, before) => `${before}${camel(pascal)}`)
      .replaceAll("widget", name)
      .replaceAll("Widget", pascal);
    writeFileSync(join(to, file.replaceAll("widget", name)), text);
  }
}

const camel = (pascal) => pascal[0].toLowerCase() + pascal.slice(1);

function enter(root, folder, own) {
  const link = join(root, "node_modules", own.name);
  if (existsSync(join(root, "node_modules"))) {
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join("../..", folder), link);
  }
  const executable = join(root, "pkg/multicall/package.json");
  const multicall = readJson(executable);
  multicall.dependencies = sorted({ ...multicall.dependencies, [own.name]: own.version });
  writeJson(executable, multicall);

  const lockFile = join(root, "package-lock.json");
  const lock = readJson(lockFile);
  lock.packages["pkg/multicall"].dependencies = multicall.dependencies;
  lock.packages[`node_modules/${own.name}`] = { resolved: folder, link: true };
  const { name, version, license, dependencies } = own;
  lock.packages[folder] = { name, version, license, dependencies };
  lock.packages = sorted(lock.packages);
  writeJson(lockFile, lock);

  const list = new Set([...linuxOnly(root), ...linuxOnlyByPackages(root)]);
  writeFileSync(join(root, "linux_only"), `${[...list].sort().join("\n")}\n`);
}

/** Line breaks and the order of imports depend on the name. */
function format(root, folder) {
  const biome = join(root, "node_modules/.bin/biome");
  if (!existsSync(biome)) return;
  const { status, stderr } = spawnSync(biome, ["check", "--write", folder], { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`biome check --write ${folder}: ${stderr}`);
}

const readJson = (path) => JSON.parse(readFileSync(path, "utf8"));
const writeJson = (path, value) => writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
/** By key, in npm's order. */
const sorted = (object) =>
  Object.fromEntries(Object.entries(object).sort(([a], [b]) => a.localeCompare(b, "en")));

function main(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { kind: { type: "string", default: "main" }, help: { type: "boolean", short: "h" } },
  });
  if (values.help) return process.stdout.write(help);
  if (positionals.length !== 1) {
    process.stderr.write(help);
    process.exitCode = 2;
    return;
  }
  const [name] = positionals;
  const folder = newPlugin(resolve(import.meta.dirname, "../.."), name, values.kind);
  console.log(`${folder} is there. Next:
  scripts/test ${folder}                 builds and runs its test
  ${folder}/${name}.ts   the plugin: put its own idea there
  ${folder}/README.md    its options, for its users
Changed beside it: linux_only, package-lock.json and pkg/multicall/package.json; commit them too.`);
}

if (import.meta.url === pathToFileURL(realpathSync(process.argv[1] ?? "")).href) {
  try {
    main(process.argv.slice(2));
  } catch (error) {
    console.error(`new-plugin: ${error.message}`);
    process.exitCode = 1;
  }
}
