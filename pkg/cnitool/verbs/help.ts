import { findCommand } from "../commands.ts";
import type { Context } from "../context.ts";
import { commandHelp, programHelp, programUsage } from "../help.ts";

/** The help of one command or of the program. An unknown topic is no failure, as with Go's cnitool. */
export async function run({ io, words }: Context): Promise<number> {
  const [topic] = words;
  const command = topic === undefined ? undefined : findCommand(topic);
  if (command) io.stdout(commandHelp(command));
  else if (topic === undefined) io.stdout(programHelp());
  else io.stderr(`Unknown help topic [\`${words.join("` `")}\`]\n${programUsage()}`);
  return 0;
}
