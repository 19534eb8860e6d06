import { type Command, commands, globalFlags } from "./commands.ts";
import type { Flag } from "./flags.ts";

/** The help text of the whole program. */
export function programHelp(): string {
  return `Runs CNI network configs: attaches network namespaces to networks, and takes them off again.\n\n${programUsage()}`;
}

/** What follows an error that no command is responsible for. */
export function programUsage(): string {
  const listed = commands.filter((c) => !c.hidden);
  const width = Math.max(...listed.map((c) => c.name.length));
  return [
    "Usage:\n  cnitool [command]\n\n",
    "Available Commands:\n",
    ...listed.map((c) => `  ${c.name.padEnd(width)}  ${c.summary}\n`),
    `\nFlags:\n${flagLines(globalFlags)}`,
    "\nEnvironment:\n",
    "  CNI_PATH     Directories with plugins, separated as in PATH\n",
    "  NETCONFPATH  Directory of network configs\n",
    "  CAP_ARGS     Capability arguments, a JSON object\n",
    "  CNI_ARGS     Arguments for the plugins, KEY=VALUE;KEY2=VALUE2\n",
    "  CNI_IFNAME   Interface name\n",
    '\nUse "cnitool [command] --help" for more about a command, with an example.\n',
  ].join("");
}

/** The help text of one command. */
export function commandHelp(command: Command): string {
  const examples = command.examples.map((example) => `  ${example}\n`).join("");
  return `${command.summary}.\n${command.about}\n\n${commandUsage(command)}\nExamples:\n${examples}`;
}

/** What follows an error of one command. */
export function commandUsage(command: Command): string {
  const own = command.flags.length > 0 ? `\nFlags:\n${flagLines(command.flags)}` : "";
  return `Usage:\n  cnitool ${command.name} ${command.args} [flags]\n${own}\nGlobal Flags:\n${flagLines(globalFlags)}`;
}

function flagLines(flags: readonly Flag[]): string {
  const left = flags.map(
    (f) => `${f.short ? `-${f.short}, ` : "    "}--${f.name}${f.value ? ` ${f.value}` : ""}`,
  );
  const width = Math.max(...left.map((text) => text.length));
  return flags.map((f, i) => `  ${left[i]!.padEnd(width)}   ${f.about}\n`).join("");
}
