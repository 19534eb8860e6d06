import { setBuiltins } from "@tscni/ipam";
import { builtin, type Plugin, runPlugin } from "@tscni/skel";
import { exitCodeOfCnitool } from "./cnitool.ts";
import type { Registry } from "./registry.ts";

/**
 * Runs what the executable was called as: a plugin, `cnitool`, or `tscni PLUGIN`, which is for trying a
 * plugin out where no link of its name is at hand.
 */
export function main(registry: Registry): unknown {
  const calledAs = baseName(process.argv0);
  const byItself = calledAs === "tscni";
  const name = byItself ? (process.argv[2] ?? "") : calledAs;

  const load = loaderOf(registry, name);
  if (load !== undefined) {
    setBuiltins((type) => builtinOf(registry, type));
    return runPlugin(load());
  }
  if (name === "cnitool") return runCnitool(registry, process.argv.slice(byItself ? 3 : 2));
  return explain(registry, byItself && name === "" ? "tscni" : name);
}

const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** What loads the plugin of this name; undefined when there is none. */
function loaderOf({ plugins }: Registry, name: string): (() => Plugin) | undefined {
  return Object.hasOwn(plugins, name) ? () => plugins[name]!.load().default : undefined;
}

/** The plugin as those see it who delegate to it and find this very executable under its name. */
function builtinOf(registry: Registry, type: string): ReturnType<typeof builtin> | undefined {
  const load = loaderOf(registry, type);
  return load === undefined ? undefined : builtin(load);
}

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
