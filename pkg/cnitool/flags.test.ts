import { expect, test } from "vitest";
import { parseDuration } from "./duration.ts";
import { commandIndex, parseFlags } from "./flags.ts";

const flags = [
  { name: "ifname", short: "i", value: "string", about: "" },
  { name: "keep", value: "id", about: "" },
  { name: "help", short: "h", about: "" },
  { name: "json", about: "" },
];

test.each([
  ["a b", ["a", "b"], undefined],
  ["a -i e1 b", ["a", "b"], "e1"],
  ["a b --ifname=e1", ["a", "b"], "e1"],
  ["--ifname e1 a", ["a"], "e1"],
  ["-ie1 a", ["a"], "e1"],
  ["-i=e1 a", ["a"], "e1"],
  ["-i= a", ["a"], ""],
  ["-i e1 -i e2", [], "e2"],
  ["-hi e1", [], "e1"],
  ["a -- -i b", ["a", "-i", "b"], undefined],
  ["- -i -x", ["-"], "-x"],
])("%j", (line, words, ifname) => {
  const parsed = parseFlags(line.split(" "), flags);
  expect(parsed.words).toEqual(words);
  expect(parsed.value("ifname")).toBe(ifname);
});

test("switches are on, off or absent; repeated values are all kept", () => {
  expect(parseFlags(["--json"], flags).on("json")).toBe(true);
  expect(parseFlags(["--json=T"], flags).on("json")).toBe(true);
  expect(parseFlags(["--json", "--json=0"], flags).on("json")).toBe(false);
  expect(parseFlags(["-h=false"], flags).on("help")).toBe(false);
  expect(parseFlags([], flags).on("json")).toBe(false);
  expect(parseFlags(["--keep", "a", "--keep=b"], flags).all("keep")).toEqual(["a", "b"]);
});

// The texts are those of the flag library of Go's cnitool.
test.each([
  ["--bogus", "unknown flag: --bogus"],
  ["--bogus=1", "unknown flag: --bogus"],
  ["--ifnam x", "unknown flag: --ifnam"],
  ["-x", "unknown shorthand flag: 'x' in -x"],
  ["-hx", "unknown shorthand flag: 'x' in -x"],
  ["--ifname", "flag needs an argument: --ifname"],
  ["-i", "flag needs an argument: 'i' in -i"],
  ["-hi", "flag needs an argument: 'i' in -i"],
  ["--json=maybe", 'invalid argument "maybe" for --json: expected true or false'],
])("%s is refused", (line, message) => {
  expect(() => parseFlags(line.split(" "), flags)).toThrow(message);
});

test.each([
  ["add n x", 0],
  ["-i e1 add", 2],
  ["--ifname=e1 add", 1],
  ["--json add", 1],
  ["-ie1 add", 1],
  ["-- add", -1],
  ["-i", -1],
  ["", 0],
])("the command of %j is word %d", (line, index) => {
  expect(commandIndex(line.split(" "), flags)).toBe(index);
});

test.each([
  ["30s", 30_000],
  ["500ms", 500],
  ["1.5m", 90_000],
  ["2h", 7_200_000],
  ["7", 7000],
])("%s lasts %d ms", (text, ms) => expect(parseDuration(text)).toBe(ms));

test.each(["", "0", "0.4ms", "-1s", "1d", "s", "1e3", "25h", "999999999999"])("%j is no duration", (text) =>
  expect(() => parseDuration(text)).toThrow("--timeout"),
);
