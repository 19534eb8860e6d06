/** Runs a command, without a shell, and returns its stdout. Throws with its stderr when it fails. */
export function run(...command: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { stdin: "ignore", timeout: 30_000 });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: exit ${exitCode}: ${stderr}`);
  return stdout.toString();
}

/** A network namespace as the helpers here take it: `makeNamespace()` or a path. */
export type NamespaceLike = { readonly path: string } | string;

/** The command line that runs a command in a namespace; in the caller's own when there is none. */
export const commandIn = (ns: NamespaceLike | undefined, command: readonly string[]): string[] =>
  ns === undefined
    ? [...command]
    : ["nsenter", `--net=${typeof ns === "string" ? ns : ns.path}`, "--", ...command];

/**
 * What iproute2 says of a namespace (the caller's own when undefined), parsed:
 * `ip(ns, "addr", "show", "dev", "eth0")`. An empty list when it says nothing.
 */
// biome-ignore lint/suspicious/noExplicitAny: its shape depends on the arguments
export function ip(ns: NamespaceLike | undefined, ...args: string[]): any[] {
  const text = run(...commandIn(ns, ["ip", "-j", "-d", ...args]));
  return text.trim() === "" ? [] : JSON.parse(text);
}
