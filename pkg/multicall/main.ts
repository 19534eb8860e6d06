import { calledAs } from "./called-as.ts";

/**
 * The first thing that runs: starts the program that the executable was called as. Each program is a file of its
 * own within the executable, so that a plugin's start pays for nothing but itself (build/entries.ts).
 */
export function main(programs: readonly string[]): void {
  const { name } = calledAs();
  const program = programs.includes(name) ? name : "about";
  require(`/$bunfs/root/${program}.js`);
}
