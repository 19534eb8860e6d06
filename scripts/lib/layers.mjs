/**
 * Checks the direction of imports: `node scripts/lib/layers.mjs [ROOT]` prints every violation and fails.
 *
 * - A package imports only from its own layer or from below, and never in a circle.
 * - Plugins never import one another.
 * - What a package imports is among its dependencies, and nobody reaches into another's folder by a path.
 *
 * Tests are free to import what they need.
 */
import { posix, resolve } from "node:path";
import { importsOf, workspacesOf } from "./workspaces.mjs";

/** From the bottom. ARCHITECTURE.md tells what each owns. A package that is not here has no layer yet: add it. */
const layers = [
  ["pkg/types", "pkg/addr", "pkg/conf"],
  ["pkg/sys", "pkg/exec", "pkg/engine"],
  ["pkg/ns", "pkg/netlink", "pkg/invoke"],
  ["pkg/ip", "pkg/record", "pkg/dbus", "pkg/iptables", "pkg/nftables"],
  ["pkg/ipam", "pkg/masquerade", "pkg/libcni"],
  ["pkg/skel", "pkg/runtime", "pkg/in-process"],
  ["plugins/*/*", "windows/*"],
  ["pkg/multicall", "pkg/cnitool"],
  ["test/*"],
];
const pluginLayer = layers.findIndex((paths) => paths.includes("plugins/*/*"));

const matches = (pattern, path) => new RegExp(`^${pattern.replaceAll("*", "[^/]+")}$`).test(path);
const layerOf = (path) => layers.findIndex((patterns) => patterns.some((pattern) => matches(pattern, path)));

/** @returns {string[]} what is wrong, a line each */
export function violations(root) {
  const workspaces = workspacesOf(root);
  const byName = new Map(workspaces.map((workspace) => [workspace.name, workspace]));
  return [
    ...workspaces.filter(({ path }) => layerOf(path) < 0).map(({ path }) => `${path}: is in no layer`),
    ...workspaces.flatMap((workspace) => wrongImports(root, workspace, byName)),
    ...circles(workspaces, byName),
  ];
}

function wrongImports(root, workspace, byName) {
  return workspace.sources.flatMap((source) =>
    importsOf(root, source)
      .map((name) => whatIsWrong(workspace, source, name, byName))
      .filter((problem) => problem !== undefined)
      .map((problem) => `${source}: ${problem}`),
  );
}

function whatIsWrong(workspace, source, name, byName) {
  if (name.startsWith(".")) {
    const target = posix.join(posix.dirname(source), name);
    return target.startsWith(`${workspace.path}/`) ? undefined : `${name} lies outside of the package`;
  }
  if (!name.startsWith("@tscni/")) return undefined;
  const packageName = name.split("/").slice(0, 2).join("/");
  const target = byName.get(packageName);
  if (target === undefined) return `${packageName} is not a package of this repository`;
  if (target === workspace) return `${name} is its own package; import the file`;
  if (!workspace.dependencies.includes(packageName)) return `${packageName} is not among its dependencies`;
  const [from, to] = [layerOf(workspace.path), layerOf(target.path)];
  if (to > from) return `${packageName} (layer ${to + 1}) is above it (layer ${from + 1})`;
  if (to === pluginLayer && from === pluginLayer) return `${packageName} is another plugin`;
  return undefined;
}

/** Packages of one layer may import one another, but not in a circle. */
function circles(workspaces, byName) {
  const done = new Set();
  const found = [];
  const visit = (workspace, way) => {
    if (way.includes(workspace.name)) {
      found.push(`${[...way.slice(way.indexOf(workspace.name)), workspace.name].join(" -> ")}: a circle`);
      return;
    }
    if (done.has(workspace)) return;
    for (const name of workspace.dependencies) {
      if (byName.has(name)) visit(byName.get(name), [...way, workspace.name]);
    }
    done.add(workspace);
  };
  for (const workspace of workspaces) visit(workspace, []);
  return found;
}

const root = resolve(process.argv[2] ?? resolve(import.meta.dirname, "../.."));
const found = violations(root);
for (const line of found) console.error(line);
process.exitCode = found.length > 0 ? 1 : 0;
