import { exitNow, writeAll } from "@tscni/sys";
import { calledAs } from "./called-as.ts";

/** https://www.cni.dev/docs/spec/#error: it was the config's `type` that led here. */
const invalidNetworkConfig = 7;

/**
 * Answers for `tscni` itself, and for a name that is no plugin's: a runtime gets an error object, a person the
 * list of plugins (name: one line about it).
 */
export function about(version: string, plugins: Readonly<Record<string, string>>): never {
  const name = calledAs();
  if (process.env.CNI_COMMAND) {
    const msg = `type: "${name}" is not a plugin of tscni, which has ${Object.keys(plugins).join(", ")}`;
    answer(1, JSON.stringify({ code: invalidNetworkConfig, msg }, undefined, 4));
    exitNow(1);
  } else if (["tscni", "help", "--help", "-h"].includes(name)) {
    answer(1, listOf(version, plugins));
    exitNow(0);
  }
  answer(2, `tscni: "${name}" is not one of its plugins\n\n${listOf(version, plugins)}`);
  exitNow(1);
}

function answer(fd: number, text: string): void {
  try {
    writeAll(fd, new TextEncoder().encode(`${text}\n`));
  } catch {
    // Nobody to tell.
  }
}

function listOf(version: string, plugins: Readonly<Record<string, string>>): string {
  const width = Math.max(...Object.keys(plugins).map((name) => name.length));
  const lines = Object.entries(plugins).map(([name, text]) => `  ${name.padEnd(width)}  ${text}`);
  return `tscni ${version}: CNI plugins in one executable, called by the name of a link to it
(or as "tscni PLUGIN"). cnitool, beside it, runs them.

${lines.join("\n")}`;
}
