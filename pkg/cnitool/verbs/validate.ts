import { statSync } from "node:fs";
import { listConfFiles } from "@tscni/libcni";
import { absolute, type Context, callOptions, confDirOf, libcniOf, pluginDirsOf } from "../context.ts";
import { jsonText } from "../json.ts";
import { printable } from "../style.ts";
import { type CheckedNetwork, checkNetworkFile } from "../validate/network.ts";
import { checkExecutables } from "../validate/plugins.ts";
import { type Problem, warning } from "../validate/report.ts";

/** Says all that is wrong with the named configs; 1 when there is an error, with --strict also for a warning. */
export async function run(context: Context): Promise<number> {
  const networks = context.words.length > 0 ? context.words.flatMap((w) => chosen(context, w)) : all(context);
  const dirs = pluginDirsOf(context);
  if (dirs.length > 0) await checkExecutables(networks, await libcniOf(context), dirs, callOptions(context));
  const problems = networks.flatMap((n) => n.files.flatMap((file) => inOrder(file.problems)));
  const count = (level: Problem["level"]) => problems.filter((p) => p.level === level).length;
  const errors = count("error");
  const warnings = count("warning");
  const valid = errors === 0 && (warnings === 0 || !context.flags.on("strict"));
  const outcome = { valid, errors, warnings, pluginsLookedUp: dirs.length > 0 };
  if (context.json) context.io.stdout(jsonText({ ...outcome, files: networks.map(toJson), problems }));
  else show(context, networks, problems, outcome);
  return valid ? 0 : 1;
}

/** What a word on the command line means: a folder, a file, or a network of the config folder. */
function chosen(context: Context, word: string): CheckedNetwork[] {
  const path = absolute(context, word);
  const kind = statSync(path, { throwIfNoEntry: false });
  const looksLikePath = /[/\\]|\.(conflist|conf|json)$/.test(word);
  if (kind?.isDirectory() && looksLikePath) return all(context, path);
  if (looksLikePath || kind?.isFile()) return [checkNetworkFile(path, context.io.schemas)];
  const found = all(context).filter((n) => n.network.name === word || n.files[0]!.document === undefined);
  if (found.some((n) => n.network.name === word)) return found;
  throw new Error(`no net configuration with name ${JSON.stringify(word)} in ${confDirOf(context)}`);
}

/** Every file of a config folder, in the order in which libcni looks at them. */
function all(context: Context, dir = confDirOf(context)): CheckedNetwork[] {
  const files = [...listConfFiles(dir, [".conflist"]), ...listConfFiles(dir, [".conf", ".json"])];
  if (files.length === 0) throw new Error(`no net configurations found in ${dir}`);
  const networks = files.map((file) => checkNetworkFile(file, context.io.schemas));
  for (const [i, { files, network }] of networks.entries()) {
    const first = networks.slice(0, i).find((n) => n.network.name === network.name && network.name !== "");
    if (first)
      files[0]!.add([
        warning(
          "name",
          `"${network.name}" is already the network of ${first.files[0]!.file}, which is the one used`,
        ),
      ]);
  }
  return networks;
}

const inOrder = (problems: readonly Problem[]): Problem[] =>
  problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));

const toJson = ({ files, network, needed }: CheckedNetwork) => ({
  file: files[0]!.file,
  network: network.name,
  cniVersion: network.cniVersion,
  plugins: [...new Set(needed.map(({ type }) => type))],
  pluginFiles: files.slice(1).map(({ file }) => file),
});

interface Outcome {
  errors: number;
  warnings: number;
  pluginsLookedUp: boolean;
}

/** A line for each problem, in the form of compilers, so that editors and terminals find the place. */
function show(context: Context, networks: CheckedNetwork[], problems: Problem[], outcome: Outcome): void {
  const { io, style } = context;
  for (const { file, line, column, path, message, level } of problems) {
    const label = level === "error" ? style.red("error") : style.yellow("warning");
    const where = style.bold(printable(line === undefined ? file : `${file}:${line}:${column}`));
    io.stdout(`${where}: ${label}: ${printable(path === "" ? message : `${path}: ${message}`)}\n`);
  }
  if (!outcome.pluginsLookedUp) io.stderr("Note: CNI_PATH is not set, so no plugin was looked for.\n");
  const counted = (n: number, what: string) => `${n} ${what}${n === 1 ? "" : "s"}`;
  const { errors, warnings } = outcome;
  const verdict =
    errors + warnings === 0
      ? style.green("nothing wrong")
      : `${counted(errors, "error")}, ${counted(warnings, "warning")}`;
  io.stdout(`${counted(networks.flatMap((n) => n.files).length, "file")}: ${verdict}.\n`);
}
