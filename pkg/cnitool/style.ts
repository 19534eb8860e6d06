import type { Io } from "./io.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Colours and weights for a terminal; each returns its text unchanged where there are none. */
export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  yellow(text: string): string;
  green(text: string): string;
}

/** Colour only on a terminal, and neither with NO_COLOR (https://no-color.org) nor on a dumb one. */
export function styleOf(io: Io, env: Env): Style {
  let known: boolean | undefined;
  const colour = () => {
    known ??= !env.NO_COLOR && env.TERM !== "dumb" && io.isTerminal?.() === true;
    return known;
  };
  const sgr = (on: number, off: number) => (text: string) =>
    colour() ? `\u001b[${on}m${text}\u001b[${off}m` : text;
  return { bold: sgr(1, 22), dim: sgr(2, 22), red: sgr(31, 39), yellow: sgr(33, 39), green: sgr(32, 39) };
}

/** Text that a file or a plugin gave us, for a terminal: nothing in it may steer that. */
export const printable = (text: string): string =>
  text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Rows as left-aligned columns, two spaces apart, below a heading; a line per row. */
export function table(
  heading: readonly string[],
  cells: readonly (readonly string[])[],
  style: Style,
): string {
  const rows = cells.map((row) => row.map(printable));
  const widths = heading.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]!.length)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, i) => cell.padEnd(widths[i]!))
      .join("  ")
      .trimEnd();
  return [style.bold(line(heading)), ...rows.map(line)].map((text) => `${text}\n`).join("");
}
