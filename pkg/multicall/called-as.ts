/** The arguments of a program: behind the link's name, or behind NAME in `tscni NAME`. */
export function argumentsOf(name: string): string[] {
  const [, called = "", first, ...rest] = process.argv;
  const link = called.slice(called.lastIndexOf("/") + 1);
  return link === "tscni" && first === name ? rest : process.argv.slice(2);
}
