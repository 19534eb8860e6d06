import { CniError, messageOf, toCniError } from "@tscni/types";
import { type Command, commands, findCommand, globalFlags } from "./commands.ts";
import type { Context, Env } from "./context.ts";
import { commandIndex, Parsed, parseFlags, UsageError } from "./flags.ts";
import { commandHelp, commandUsage, programHelp, programUsage } from "./help.ts";
import type { Io } from "./io.ts";
import { jsonText } from "./json.ts";
import { errorText, messageLines } from "./message.ts";
import { styleOf } from "./style.ts";

export type { Context, Env } from "./context.ts";
export type { Finding, Io, PluginSchema } from "./io.ts";
export { processIo } from "./process.ts";

/**
 * The cnitool command: runs what `argv` (without the program's own name) asks for. Resolves to the exit
 * status, 0, 1 or (interrupted) 130, with everything printed through `io`; never rejects because of what a user typed
 * or a plugin did.
 */
export async function main(argv: readonly string[], env: Env, io: Io): Promise<number> {
  const everyFlag = [...globalFlags, ...commands.flatMap((c) => c.flags)];
  const at = commandIndex(argv, everyFlag);
  const command = at < 0 ? undefined : findCommand(argv[at]!);
  if (at >= 0 && command === undefined) return unknownCommand(argv[at]!, argv, io);
  const rest = at < 0 ? argv : argv.toSpliced(at, 1);
  try {
    const context = contextOf(command, rest, env, io);
    if (command === undefined || context.flags.on("help")) {
      io.stdout(command ? commandHelp(command) : programHelp());
      return 0;
    }
    const { length } = context.words;
    if (length < command.minWords)
      throw new UsageError(`requires at least ${command.minWords} arg(s), only received ${length}`);
    return await (await command.load()).run(context);
  } catch (error) {
    return await failure(error, command, argv, io);
  }
}

function contextOf(command: Command | undefined, rest: readonly string[], env: Env, io: Io): Context {
  const flags = command?.rawWords
    ? new Parsed()
    : parseFlags(rest, [...(command?.flags ?? []), ...globalFlags]);
  return {
    flags,
    words: command?.rawWords ? rest : flags.words,
    json: flags.on("json"),
    env,
    io,
    style: styleOf(io, env),
  };
}

/** What a shell reports of a program that Ctrl-C ended. */
const interrupted = 130;

/**
 * Says what went wrong as Go's cnitool does, for scripts that look at it: the message, the usage, and the
 * message again. Commands that the Go tool lacks show their usage only when the command line was wrong.
 */
async function failure(
  error: unknown,
  command: Command | undefined,
  argv: readonly string[],
  io: Io,
): Promise<number> {
  if (isBrokenPipe(error)) return 1;
  const message = messageLines(messageOf(error));
  message.more.push(...(await flagMeant(error, command)));
  io.stderr(errorText(message));
  if (wantsJson(argv)) io.stdout(jsonText(errorObject(error)));
  else if (command === undefined || command.likeGo || error instanceof UsageError) {
    const usage = command ? commandUsage(command) : programUsage();
    io.stderr(`${usage}\n${message.headline}\n`);
  }
  return io.signal?.aborted ? interrupted : 1;
}

/** A line with the flag that an unknown one was probably meant to be. */
async function flagMeant(error: unknown, command: Command | undefined): Promise<string[]> {
  if (!(error instanceof UsageError) || error.unknownFlag === undefined) return [];
  const { nearest } = await import("@tscni/conf");
  const meant = nearest(
    error.unknownFlag,
    [...(command?.flags ?? []), ...globalFlags].map((flag) => flag.name),
  );
  return meant === undefined ? [] : [`did you mean --${meant}?`];
}

/** Whether `--json` was given, also on a command line that could not be understood. */
const wantsJson = (argv: readonly string[]): boolean =>
  argv.some((word) => /^--json(=(1|t|true))?$/i.test(word));

/** Nobody reads our output any more (`cnitool help | head -1`), so there is nobody to tell it to either. */
const isBrokenPipe = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "EPIPE";

/** The spec's error object, as a plugin would print it. */
const errorObject = (error: unknown) =>
  (error instanceof UsageError ? new CniError(4, error.message) : toCniError(error)).toObject();

/** Suggests, in the form of the Go tool, what was probably meant. */
async function unknownCommand(typed: string, argv: readonly string[], io: Io): Promise<number> {
  const { nearest } = await import("@tscni/conf");
  const names = commands.filter((c) => !c.hidden).map((c) => c.name);
  const meant = [
    ...commands.filter((c) => c.alsoTyped?.includes(typed.toLowerCase())).map((c) => c.name),
    ...names.filter((name) => name.startsWith(typed.toLowerCase())),
    typed.length > 1 ? nearest(typed, names) : undefined,
  ];
  const unique = [...new Set(meant.filter((name) => name !== undefined))];
  const hint = unique.length === 0 ? "" : `\nDid you mean this?\n${unique.map((n) => `\t${n}\n`).join("")}`;
  const problem = `unknown command ${JSON.stringify(typed)} for "cnitool"`;
  if (wantsJson(argv)) io.stdout(jsonText(errorObject(new UsageError(problem))));
  const message = `${problem}\n${hint}`;
  io.stderr(
    `Error: ${message}${hint && "\n"}Run 'cnitool --help' for usage.\n${hint ? `${message}\n` : message}`,
  );
  return 1;
}
