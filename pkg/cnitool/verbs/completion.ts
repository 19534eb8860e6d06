import { findCommand } from "../commands.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../flags.ts";
import { commandHelp } from "../help.ts";
import { completionScripts } from "../shells.ts";

/** Prints the script that makes a shell ask `cnitool __complete`. */
export async function run({ io, flags, words }: Context): Promise<number> {
  const [shell, ...more] = words;
  if (shell === undefined) {
    io.stdout(commandHelp(findCommand("completion")!));
    return 0;
  }
  const script = completionScripts[shell];
  if (script === undefined || more.length > 0) {
    const wrong = script === undefined ? shell : more[0];
    throw new UsageError(
      `unknown shell ${JSON.stringify(wrong)}: expected one of ${Object.keys(completionScripts).join(", ")}`,
    );
  }
  io.stdout(script(flags.on("no-descriptions") ? "__completeNoDesc" : "__complete"));
  return 0;
}
