/**
 * The packages that other systems skip, one workspace path a line in `linux_only` at the root: those that reach
 * the kernel, by FFI or by a *.linux.ts of their own, or depend on one that does.
 *
 *   node scripts/lib/linux-only.mjs list       the paths
 *   node scripts/lib/linux-only.mjs excludes   as options of vitest, none on Linux
 *   node scripts/lib/linux-only.mjs check      fails unless the list is what the packages say
 */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { importsOf, workspacesOf } from "./workspaces.mjs";

/** @returns {string[]} what the file lists */
export function linuxOnly(root) {
  return readFileSync(join(root, "linux_only"), "utf8").split("\n").filter(Boolean);
}

/** @returns {string[]} what it should list */
export function linuxOnlyByPackages(root) {
  const workspaces = workspacesOf(root);
  const byName = new Map(workspaces.map((workspace) => [workspace.name, workspace]));
  const touchesKernel = ({ sources }) =>
    sources.some((source) => source.endsWith(".linux.ts") || importsOf(root, source).includes("bun:ffi"));
  const reaches = (workspace) =>
    touchesKernel(workspace) ||
    workspace.dependencies.some((name) => byName.has(name) && reaches(byName.get(name)));
  return workspaces.filter(reaches).map(({ path }) => path);
}

/** @returns {string[]} differences, a line each */
export function disagreements(root) {
  const [listed, actual] = [linuxOnly(root), linuxOnlyByPackages(root)];
  return [
    ...actual.filter((path) => !listed.includes(path)).map((path) => `linux_only lacks ${path}`),
    ...listed
      .filter((path) => !actual.includes(path))
      .map((path) => `linux_only has ${path}, which is portable`),
  ];
}

function main([command, folder]) {
  const root = resolve(folder ?? join(import.meta.dirname, "../.."));
  if (command === "list") {
    console.log(linuxOnly(root).join("\n"));
  } else if (command === "excludes") {
    const paths = process.platform === "linux" ? [] : linuxOnly(root);
    console.log(paths.map((path) => `--exclude=${path}/**`).join(" "));
  } else if (command === "check") {
    const found = disagreements(root);
    for (const line of found) console.error(line);
    process.exitCode = found.length > 0 ? 1 : 0;
  } else {
    console.error("usage: linux-only.mjs list|excludes|check [ROOT]");
    process.exitCode = 2;
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) main(process.argv.slice(2));
