import { expect, test } from "vitest";
import { printable, styleOf, table } from "./style.ts";

const io = { stdout: () => {}, stderr: () => {}, cwd: "/" };
const terminal = { ...io, isTerminal: () => true };

test.each([
  ["a terminal", terminal, {}, "\u001b[31mx\u001b[39m"],
  ["a pipe", { ...io, isTerminal: () => false }, {}, "x"],
  ["no idea", io, {}, "x"],
  ["NO_COLOR", terminal, { NO_COLOR: "1" }, "x"],
  ["an empty NO_COLOR", terminal, { NO_COLOR: "" }, "\u001b[31mx\u001b[39m"],
  ["a dumb terminal", terminal, { TERM: "dumb" }, "x"],
])("%s", (_, to, env, red) => expect(styleOf(to, env).red("x")).toBe(red));

test("a terminal is asked for only when there is something to colour, and once", () => {
  let asked = 0;
  const style = styleOf({ ...io, isTerminal: () => ++asked > 0 }, {});
  expect(asked).toBe(0);
  style.bold("x");
  style.dim("x");
  expect(asked).toBe(1);
});

test("a table's cells are aligned, and cannot steer the terminal", () => {
  const rows = [
    ["a", "\u001b[2Jbc"],
    ["long", "d"],
  ];
  expect(table(["X", "Y"], rows, styleOf(io, {}))).toBe("X     Y\na     \\u001b[2Jbc\nlong  d\n");
  expect(printable("a\tb\u009b\u007f é")).toBe("a\\u0009b\\u009b\\u007f é");
});
