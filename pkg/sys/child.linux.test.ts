import { mkdtempSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { findProgram, isStartFailure, runChild, startChild } from "./child.ts";
import { close, lockExclusive, O, open } from "./files.ts";

const sh = (script: string, options: Parameters<typeof runChild>[2] = {}) =>
  runChild("/bin/sh", ["-c", script], options);

test("input, both outputs, status", () => {
  expect(sh("cat; echo grüße >&2; exit 3", { stdin: "a\n" })).toEqual({
    stdout: "a\n",
    stderr: "grüße\n",
    exitCode: 3,
    signal: undefined,
    timedOut: false,
  });
});

test("megabytes in and out", () => {
  const text = "0123456789abcdef\n".repeat(1 << 18);
  const { stdout, stderr } = sh("tee /dev/stderr", { stdin: text });
  expect(stdout === text && stderr === text).toBe(true);
});

test("a program that opens its input by name, as nft does", () => {
  expect(sh("cat /dev/stdin; cat /dev/stdin", { stdin: "twice\n" }).stdout).toBe("twice\ntwice\n");
});

test("the environment is what was given, arguments are not looked into", () => {
  expect(runChild("/usr/bin/env", [], { env: ["A=b c", "D="] }).stdout).toBe("A=b c\nD=\n");
  expect(runChild("/bin/echo", ["$HOME", "a  b", "", "*"]).stdout).toBe("$HOME a  b  *\n");
});

test("signals are as programs expect them", () => {
  const { stdout } = sh("grep -E '^Sig(Blk|Ign)' /proc/self/status");
  expect(stdout).toMatch(/SigBlk:\s0+\nSigIgn:\s0+\n/);
  expect(sh("kill -TERM $$")).toMatchObject({ exitCode: undefined, signal: 15 });
});

test("a child gets none of our descriptors but its three", () => {
  const path = join(mkdtempSync(join(tmpdir(), "tscni-child-")), "secret");
  const fd = open(path, O.RDWR | O.CREAT, 0o600);
  const { stdout } = sh("readlink /proc/self/fd/*"); // with some that this test's own engine lets through
  expect(stdout).not.toContain("secret");
  expect(stdout.match(/memfd:std/g)).toHaveLength(3);
  close(fd);
});

test("time is limited, and what was written until then is there", () => {
  const start = performance.now();
  const exit = sh("echo begun; exec sleep 20", { timeoutMs: 100 });
  expect(exit).toMatchObject({ stdout: "begun\n", signal: 9, timedOut: true });
  expect(performance.now() - start).toBeLessThan(5000);
});

test("children side by side", () => {
  const start = performance.now();
  const children = ["a", "b", "c"].map((name) => startChild("/bin/sh", ["-c", `sleep 0.3; echo ${name}`]));
  expect(children.map((child) => child.wait().stdout)).toEqual(["a\n", "b\n", "c\n"]);
  expect(performance.now() - start).toBeLessThan(800);
});

test("a program that can't be started says so by errno, and leaves no descriptors open", () => {
  const folder = mkdtempSync(join(tmpdir(), "tscni-child-"));
  writeFileSync(join(folder, "text"), "no program", { mode: 0o755 });
  const failing = (path: string): unknown => {
    try {
      return runChild(path, []);
    } catch (error) {
      return error;
    }
  };
  for (const [path, code] of [
    ["/nonesuch/program", "ENOENT"],
    [folder, "EACCES"],
    [join(folder, "text"), "ENOEXEC"],
  ] as const) {
    expect(failing(path)).toMatchObject({ code, subject: path });
    expect(isStartFailure(failing(path))).toBe(true);
  }
  const open = () => readdirSync("/proc/self/fd").length; // of other tests in this process, too
  const before = open();
  for (let i = 0; i < 200; i++) failing("/nonesuch/program");
  expect(open() - before).toBeLessThan(200);
});

test("a lock lasts as long as the child that has it, too", () => {
  const path = join(mkdtempSync(join(tmpdir(), "tscni-child-")), "lock");
  const take = () => open(path, O.RDWR | O.CREAT, 0o600);
  const lock = take();
  lockExclusive(lock);
  const child = startChild("/bin/sh", ["-c", "exec sleep 0.3"], { inherit: lock });
  close(lock);
  const start = performance.now();
  const second = take();
  lockExclusive(second);
  expect(performance.now() - start).toBeGreaterThan(200);
  close(second);
  child.wait();
});

test("programs are found in PATH first, never in the working directory", () => {
  const folder = mkdtempSync(join(tmpdir(), "tscni-child-"));
  writeFileSync(join(folder, "sh"), "#!/bin/sh\n", { mode: 0o755 });
  writeFileSync(join(folder, "tscni-own"), "#!/bin/sh\n", { mode: 0o755 });
  expect(findProgram("sh", `${folder}:/bin`)).toBe(join(folder, "sh"));
  expect(findProgram("sh", "")).toBe("/usr/bin/sh");
  expect(findProgram("tscni-own", folder)).toBe(join(folder, "tscni-own"));
  const relativeFolder = relative(process.cwd(), folder);
  expect(findProgram("tscni-own", `.:${relativeFolder}::/bin`)).toBeUndefined();
});

test("a folder of PATH that can't be entered is passed over", () => {
  const loop = join(mkdtempSync(join(tmpdir(), "tscni-child-")), "loop");
  symlinkSync(loop, loop);
  expect(findProgram("sh", `${loop}:/bin`)).toBe("/bin/sh");
});
