import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A plugin's workspace package. */
export interface PluginPackage {
  /** The CNI type: the name of its folder. */
  name: string;
  packageName: string;
  about: string;
  folder: string;
  /** Whether it hands out addresses itself. */
  isIpam: boolean;
  /** Whether it has addresses handed out by another. */
  delegates: boolean;
  /** Whether it does something for people who call it with arguments: the module `./command` among its exports. */
  hasCommand: boolean;
}

/** The plugins, by what lies in plugins/ and windows/. */
export function findPlugins(root: string): PluginPackage[] {
  return globSync(["plugins/*/*/package.json", "windows/*/package.json"], { cwd: root })
    .sort()
    .map((path) => packageAt(root, dirname(path)))
    .filter(({ name, folder }) => existsSync(join(folder, `${name}.ts`)));
}

function packageAt(root: string, path: string): PluginPackage {
  const json = JSON.parse(readFileSync(join(root, path, "package.json"), "utf8"));
  return {
    name: json.name.replace("@tscni/plugin-", ""),
    packageName: json.name,
    about: json.description,
    folder: join(root, path),
    isIpam: path.startsWith("plugins/ipam/"),
    delegates: sourcesIn(join(root, path)).some((source) => source.includes('from "@tscni/ipam"')),
    hasCommand: Object.hasOwn(json.exports ?? {}, "./command"),
  };
}

const sourcesIn = (folder: string): string[] =>
  globSync("*.ts", { cwd: folder, exclude: ["*.test.ts"] }).map((name) =>
    readFileSync(join(folder, name), "utf8"),
  );

/**
 * The programs that the executable of the plugins is made of, name to source. Each is bundled by itself, with its own
 * copy of what it shares with others, so that a plugin's start pays for nothing but itself.
 */
export function programSources(plugins: readonly PluginPackage[], version: string): Map<string, string> {
  const abouts = Object.fromEntries(plugins.map(({ name, about }) => [name, about]));
  return new Map([
    [
      "about",
      `import { about } from "../about.ts";\nabout(${JSON.stringify(version)}, ${JSON.stringify(abouts)});\n`,
    ],
    ...plugins.map((plugin) => [plugin.name, pluginSource(plugin, plugins)] as const),
    ...plugins.filter(({ hasCommand }) => hasCommand).map(commandProgram),
  ]);
}

/** A plugin called with arguments is another program (pkg/engine/host/main.c), so that its own stays small. */
const commandProgram = ({ name, packageName }: PluginPackage) =>
  [
    `${name}.command`,
    `import { command } from "${packageName}/command";
import { argumentsOf } from "../called-as.ts";
command(argumentsOf("${name}"), process.env);
`,
  ] as const;

function pluginSource({ packageName, delegates }: PluginPackage, plugins: readonly PluginPackage[]): string {
  if (!delegates) {
    return `import plugin from "${packageName}";
import { runPlugin } from "@tscni/skel";
runPlugin(plugin);
`;
  }
  const delegatees = plugins.filter(({ isIpam }) => isIpam);
  const lines = delegatees.map(({ name, packageName: ipam }) =>
    name === usualIpam ? `  "${name}": () => usual,\n` : `  "${name}": () => require("${ipam}").default,\n`,
  );
  const usual = delegatees.find(({ name }) => name === usualIpam);
  return `import plugin from "${packageName}";
${usual === undefined ? "" : `import usual from "${usual.packageName}";\n`}import { runDelegating } from "../plugin.ts";
runDelegating(plugin, {
${lines.join("")}});
`;
}

/** Nearly every bridge has it, so it is bundled in rather than loaded on demand: that saves 8 % of an ADD. */
const usualIpam = "host-local";

/** cnitool, with the configs of the plugins known to it. */
export function cnitoolSource(plugins: readonly PluginPackage[]): string {
  const imports = plugins.map(({ packageName }, i) => `import * as conf${i} from "${packageName}/conf";\n`);
  const lines = plugins.map(({ name }, i) => `  "${name}": conf${i},\n`);
  return `${imports.join("")}import { cnitool } from "../cnitool.ts";
cnitool({
${lines.join("")}});
`;
}
