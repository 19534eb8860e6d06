import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A plugin's workspace package. */
export interface PluginPackage {
  /** The CNI type: the name of its folder. */
  name: string;
  packageName: string;
  about: string;
  folder: string;
}

/** The plugins, by what lies in plugins/ and windows/: a folder whose package has a ./conf export. */
export function findPlugins(root: string): PluginPackage[] {
  return globSync(["plugins/*/*/package.json", "windows/*/package.json"], { cwd: root })
    .sort()
    .map((path) => ({ path, json: JSON.parse(readFileSync(join(root, path), "utf8")) }))
    .filter(({ json }) => json.name.startsWith("@tscni/plugin-"))
    .map(({ path, json }) => ({
      name: json.name.slice("@tscni/plugin-".length),
      packageName: json.name,
      about: json.description,
      folder: join(root, dirname(path)),
    }))
    .filter(({ name, folder }) => existsSync(join(folder, `${name}.ts`)));
}

/**
 * The program that is compiled. It names every module in a `require` of its own, behind a function: a module
 * starts up only when it is called for, and nothing is ever looked for outside the executable. (Top-level
 * await, which would make these imports, does not go with bytecode.)
 */
export function entrySource(plugins: readonly PluginPackage[], version: string): string {
  const entries = plugins.map(
    ({ name, packageName, about }) => `    ${JSON.stringify(name)}: {
      about: ${JSON.stringify(about)},
      load: () => require(${JSON.stringify(packageName)}),
      loadConf: () => require(${JSON.stringify(`${packageName}/conf`)}),
    },`,
  );
  return `// Written by pkg/multicall/build.ts from the folders of the plugins.
import { main } from "../main.ts";

main({
  version: ${JSON.stringify(version)},
  plugins: {
${entries.join("\n")}
  },
  loadCnitool: () => require("@tscni/cnitool"),
});
`;
}
