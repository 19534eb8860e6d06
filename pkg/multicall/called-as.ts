/** The name of the link that we were called by; without a link, that of the executable, "tscni". */
function linkName(): string {
  const [, called = "tscni"] = process.argv;
  return called.slice(called.lastIndexOf("/") + 1);
}

/** The program that was asked for: by the name of the link, or NAME of `tscni NAME`. */
export function calledAs(): string {
  const [, , first] = process.argv;
  const link = linkName();
  return link === "tscni" && first !== undefined ? first : link;
}

/** The arguments of a program: behind the link's name, or behind NAME in `tscni NAME`. */
export function argumentsOf(name: string): string[] {
  const [, , first, ...rest] = process.argv;
  return linkName() === "tscni" && first === name ? rest : process.argv.slice(2);
}
