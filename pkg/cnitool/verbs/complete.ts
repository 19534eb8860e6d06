import { readdirSync } from "node:fs";
import { type Command, commands, findCommand, globalFlags } from "../commands.ts";
import { type Context, confDirOf, libcniOf, networksIn, pluginDirsOf } from "../context.ts";
import { commandIndex, type Flag, Parsed, parseFlags } from "../flags.ts";
import { completionScripts } from "../shells.ts";

/** Candidates, some with a description, and whether file names are candidates too. */
interface Answer {
  words: (readonly [word: string, about?: string])[];
  files?: boolean;
}

/** What the completion scripts ask: the last word is the one to complete, and may be empty. */
export const run = (context: Context): Promise<number> => complete(context, true);

/** Completes; `describe` adds descriptions to the candidates. */
export async function complete(context: Context, describe: boolean): Promise<number> {
  const before = context.words.slice(0, -1);
  const typed = context.words.at(-1) ?? "";
  const { words, files } = await answerFor(context, before, typed);
  const lines = words
    .filter(([word]) => word.startsWith(typed))
    .map(([word, about]) => (describe && about ? `${word}\t${about}\n` : `${word}\n`));
  context.io.stdout(`${lines.join("")}:${files ? 0 : 4}\n`);
  return 0;
}

async function answerFor(context: Context, before: readonly string[], typed: string): Promise<Answer> {
  const at = commandIndex(before, [...globalFlags, ...commands.flatMap((c) => c.flags)]);
  const command = at < 0 ? undefined : findCommand(before[at]!);
  if (at >= 0 && command === undefined) return { words: [] };
  const flags = [...(command?.flags ?? []), ...globalFlags];
  const awaiting = flags.find(
    (f) => f.value && (before.at(-1) === `--${f.name}` || before.at(-1) === `-${f.short}`),
  );
  const words = before.filter((_, i) => i !== at);
  const given = parsedSoFar(awaiting ? words.slice(0, -1) : words, flags);
  const inner = { ...context, flags: given, words: given.words };
  if (awaiting) return valuesOf(awaiting, inner);
  if (typed.startsWith("-")) return { words: flags.map((f) => [`--${f.name}`, f.about]) };
  if (command === undefined) return { words: visible.map((c) => [c.name, c.summary]) };
  return wordsOf(command, inner);
}

const visible = commands.filter((c) => !c.hidden);

/** A command line that is not finished may well be wrong; then nothing is known of it. */
function parsedSoFar(words: readonly string[], flags: readonly Flag[]): Parsed {
  try {
    return parseFlags(words, flags);
  } catch {
    return new Parsed();
  }
}

async function valuesOf(flag: Flag, context: Context): Promise<Answer> {
  if (flag.value === "dir" || flag.value === "file") return { words: [], files: true };
  if (flag.name !== "keep") return { words: [] };
  const cached = (await libcniOf(context)).getCachedAttachments();
  const [network] = context.words;
  return {
    words: cached.filter((a) => !network || a.network === network).map((a) => [a.containerId, a.netns]),
  };
}

async function wordsOf(command: Command, context: Context): Promise<Answer> {
  const count = context.words.length;
  if (command.name === "completion") return { words: count === 0 ? shellNames.map((name) => [name]) : [] };
  if (command.name === "help") return { words: count === 0 ? visible.map((c) => [c.name, c.summary]) : [] };
  if (command.name === "version") return { words: pluginNames(context).map((name) => [name]) };
  if (count > 0) return { words: [], files: count === 1 && command.minWords === 2 };
  return { words: Object.entries(await networksIn(confDirOf(context))), files: command.name === "validate" };
}

const shellNames = Object.keys(completionScripts);

function pluginNames(context: Context): string[] {
  return pluginDirsOf(context).flatMap((dir) => {
    try {
      return readdirSync(dir);
    } catch {
      return [];
    }
  });
}
