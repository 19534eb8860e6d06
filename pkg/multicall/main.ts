import { exitCodeOfCnitool } from "./cnitool.ts";
import type { FindPlugin, Registry } from "./registry.ts";

/**
 * Runs what the executable was called as: a plugin, `cnitool`, or `tscni PLUGIN`, which is for trying a
 * plugin out where no link of its name is at hand.
 */
export function main(registry: Registry): unknown {
  const calledAs = baseName(process.argv0);
  const byItself = calledAs === "tscni";
  const name = byItself ? (process.argv[2] ?? "") : calledAs;

  const plugin = findIn(registry)(name);
  if (plugin !== undefined) return registry.runPlugin(plugin);
  if (name === "cnitool") return runCnitool(registry, process.argv.slice(byItself ? 3 : 2));
  return explain(registry, byItself && name === "" ? "tscni" : name);
}

const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** The way to the plugins of this executable for those who delegate to them. */
export const findIn =
  ({ plugins }: Registry): FindPlugin =>
  (name) =>
    Object.hasOwn(plugins, name) ? plugins[name]!.load().default : undefined;

async function runCnitool(registry: Registry, argv: string[]): Promise<void> {
  process.exitCode = await exitCodeOfCnitool(registry, argv);
}

/** Called under a name that is no plugin's. A runtime gets an error object, a person the list of plugins. */
function explain(registry: Registry, name: string): void {
  if (process.env.CNI_COMMAND) {
    const names = Object.keys(registry.plugins).join(", ");
    const msg = `type: "${name}" is not a plugin of tscni, which has ${names}`;
    console.log(JSON.stringify({ code: invalidNetworkConfig, msg }, undefined, 4));
    process.exitCode = 1;
  } else if (["tscni", "help", "--help", "-h"].includes(name)) {
    console.log(aboutOf(registry));
  } else {
    console.error(`tscni: "${name}" is not one of its plugins\n\n${aboutOf(registry)}`);
    process.exitCode = 1;
  }
}

/** https://www.cni.dev/docs/spec/#error: it was the config's `type` that led here. */
const invalidNetworkConfig = 7;

function aboutOf({ version, plugins }: Registry): string {
  const width = Math.max(...Object.keys(plugins).map((name) => name.length));
  const lines = Object.entries(plugins).map(([name, { about }]) => `  ${name.padEnd(width)}  ${about}`);
  return `tscni ${version}: CNI plugins in one executable, called by the name of a link to it
(or as "tscni PLUGIN"). cnitool, under its own name, runs them.

${lines.join("\n")}`;
}
