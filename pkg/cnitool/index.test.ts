import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { commands } from "./commands.ts";
import { main } from "./index.ts";
import { containerIdOf, parseCapabilityArgs, parseCniArgs } from "./runtime.ts";
import { toolVersion } from "./tool-version.ts";

async function cnitool(line: string, env: Record<string, string> = {}) {
  const stdout: string[] = [];
  const stderr: string[] = [];
  const io = {
    stdout: (text: string) => stdout.push(text),
    stderr: (text: string) => stderr.push(text),
    cwd: "/",
  };
  const status = await main(line === "" ? [] : line.split(" "), env, io);
  return { status, stdout: stdout.join(""), stderr: stderr.join("") };
}

test.each(["", "-h", "--help", "help", "-- add", "-i eth1"])("%j shows the program's help", async (line) => {
  const { status, stdout, stderr } = await cnitool(line);
  expect([status, stderr]).toEqual([0, ""]);
  for (const command of commands) expect(stdout.includes(`\n  ${command.name} `)).toBe(!command.hidden);
});

test.each(commands.filter((c) => !c.hidden).map((c) => c.name))(
  "%s has help with an example",
  async (name) => {
    const help = await cnitool(`help ${name}`);
    expect(help).toEqual(await cnitool(`${name} --help`));
    expect(help).toMatchObject({ status: 0, stderr: "" });
    expect(help.stdout).toMatch(new RegExp(`Usage:\n  cnitool ${name}`));
    expect(help.stdout).toMatch(/\nExamples:\n {2}\S/);
  },
);

test("an unknown help topic is answered with the usage, not a failure", async () => {
  const { status, stdout, stderr } = await cnitool("help bogus");
  expect([status, stdout]).toEqual([0, ""]);
  expect(stderr.startsWith("Unknown help topic [`bogus`]\nUsage:\n")).toBe(true);
});

test.each([
  ["ad", ["add"]],
  ["dle", ["del"]],
  ["delete", ["del"]],
  ["rm", ["del"]],
  ["stat", ["status"]],
  ["chekc", ["check"]],
  ["ls", ["attachments"]],
  ["atachments", ["attachments"]],
  ["validte", ["validate"]],
  ["C", ["check", "completion"]],
  ["bogus", []],
])("for %s it suggests %j", async (typed, suggestions) => {
  const { status, stdout, stderr } = await cnitool(`${typed} a b`);
  expect([status, stdout]).toEqual([1, ""]);
  const [first, second] = stderr.split("Run 'cnitool --help' for usage.\n");
  const meant = suggestions.map((name) => `\t${name}\n`).join("");
  const message = `unknown command "${typed}" for "cnitool"\n${meant && `\nDid you mean this?\n${meant}`}`;
  expect(first).toBe(`Error: ${message}${meant && "\n"}`);
  expect(second).toBe(meant ? `${message}\n` : message);
});

test.each([
  ["add", "requires at least 2 arg(s), only received 0"],
  ["check x", "requires at least 2 arg(s), only received 1"],
  ["del x", "requires at least 2 arg(s), only received 1"],
  ["gc", "requires at least 1 arg(s), only received 0"],
  ["add --bogus a b", "unknown flag: --bogus"],
  ["add a b -i", "flag needs an argument: 'i' in -i"],
  ["validate --rollback x", "unknown flag: --rollback"],
  ["completion tcsh", 'unknown shell "tcsh": expected one of bash, fish, powershell, zsh'],
])("%j: the message, the usage and the message again", async (line, message) => {
  const { status, stdout, stderr } = await cnitool(line);
  expect([status, stdout]).toEqual([1, ""]);
  const name = line.split(" ")[0]!;
  expect(stderr.startsWith(`Error: ${message}\nUsage:\n  cnitool ${name} `)).toBe(true);
  expect(stderr.endsWith(`\n\n${message}\n`)).toBe(true);
});

test.each([
  ["add --ifnam x a b", "unknown flag: --ifnam", "did you mean --ifname?"],
  ["gc --dryrun a", "unknown flag: --dryrun", "did you mean --dry-run?"],
])("%j: the flag that was meant stands below the message", async (line, message, meant) => {
  const { stderr } = await cnitool(line);
  expect(stderr.startsWith(`Error: ${message}\n  ${meant}\nUsage:\n`)).toBe(true);
  expect(stderr.endsWith(`\n${message}\n`)).toBe(true);
});

test("with --json an error is an error object on stdout", async () => {
  const { status, stdout, stderr } = await cnitool("add --json");
  expect(status).toBe(1);
  expect(JSON.parse(stdout)).toEqual({ code: 4, msg: "requires at least 2 arg(s), only received 0" });
  expect(stderr).toBe("Error: requires at least 2 arg(s), only received 0\n");
});

test("with --json an unknown command is an error object too", async () => {
  const { status, stdout } = await cnitool("bogus --json");
  expect(status).toBe(1);
  expect(JSON.parse(stdout)).toEqual({ code: 4, msg: 'unknown command "bogus" for "cnitool"' });
});

test("a reader that goes away is no error to talk about", async () => {
  const stderr: string[] = [];
  const broken = Object.assign(new Error("EPIPE: broken pipe, write"), { code: "EPIPE" });
  const stdout = () => {
    throw broken;
  };
  expect(await main(["help"], {}, { stdout, stderr: (text) => stderr.push(text), cwd: "/" })).toBe(1);
  expect(stderr).toEqual([]);
});

test("container ids are those of Go's cnitool", () => {
  expect(containerIdOf("/var/run/netns/t1")).toBe("cnitool-da5fe641dd6ee8187e20");
});

test.each([
  ["a=b", [["a", "b"]]],
  [
    "a=b;C=d",
    [
      ["a", "b"],
      ["C", "d"],
    ],
  ],
])("CNI_ARGS %s", (text, pairs) => expect(parseCniArgs(text)).toEqual(pairs));

test.each([
  ["a", '"a"'],
  ["=b", '"=b"'],
  ["a=", '"a="'],
  ["a=b=c", '"a=b=c"'],
  ["a=b;", '""'],
])("CNI_ARGS %s is refused", (text, shown) =>
  expect(() => parseCniArgs(text)).toThrow(`invalid CNI_ARGS pair ${shown}`),
);

test.each([
  ['{"mac":"x"}', { mac: "x" }],
  ["null", {}],
])("CAP_ARGS %s", (text, value) => expect(parseCapabilityArgs(text)).toEqual(value));

test.each([
  ["a", 'CAP_ARGS: not JSON at line 1, column 1: expected a value, found "a"'],
  ["[1]", "CAP_ARGS: [1] is not a JSON object"],
  ['"x"', 'CAP_ARGS: "x" is not a JSON object'],
  ['{"a":1', 'CAP_ARGS: not JSON at line 1, column 7: expected "," or "}", found the end of the file'],
])("CAP_ARGS %s is refused", (text, message) => expect(() => parseCapabilityArgs(text)).toThrow(message));

test("the version is the package's", () => {
  const { version } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  expect(toolVersion).toBe(version);
});
