import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * A workspace package of this repository.
 * @typedef {{ path: string, name: string, dependencies: string[], sources: string[] }} Workspace
 * `path` and `sources` (what it ships: no tests and their testing.ts, nothing built) are relative to the root, with "/".
 */

/** @returns {Workspace[]} every workspace that the root package.json names, by path */
export function workspacesOf(root) {
  const { workspaces } = readJson(join(root, "package.json"));
  return workspaces
    .flatMap((pattern) => expand(root, pattern))
    .filter((path) => existsSync(join(root, path, "package.json")))
    .sort()
    .map((path) => {
      const { name, dependencies = {} } = readJson(join(root, path, "package.json"));
      return { path, name, dependencies: Object.keys(dependencies), sources: sourcesIn(root, path) };
    });
}

const readJson = (path) => JSON.parse(readFileSync(path, "utf8"));

/** The folders of a pattern that ends in "/*", the only kind that we use. */
function expand(root, pattern) {
  const folder = pattern.replace(/\/\*$/, "");
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => `${folder}/${entry.name}`);
}

function sourcesIn(root, folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory())
      return ["node_modules", "dist"].includes(entry.name) ? [] : sourcesIn(root, path);
    return /\.ts$/.test(entry.name) && !/(\.test|^testing)\.ts$/.test(entry.name) ? [path] : [];
  });
}

/** The modules that a source file imports or requires, by literal name. Comments (doc examples) don't count. */
export function importsOf(root, source) {
  const code = readFileSync(join(root, source), "utf8").replace(/^\s*(\/\/|\/?\*).*$/gm, "");
  return [...code.matchAll(/\b(?:from|import|require)\s*\(?\s*["']([^"']+)["']/g)].map(([, name]) => name);
}
