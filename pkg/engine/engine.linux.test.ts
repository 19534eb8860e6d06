import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileProgram, linkExecutable } from "./index.ts";
import { probe } from "./testing/probe.ts";

let folder: string;
let executable: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tscni-engine-"));
  executable = join(folder, "probe");
  const bytecode = await compileProgram("probe", join(import.meta.dirname, "testing/answer.ts"), folder);
  await linkExecutable(
    process.arch === "arm64" ? "linux-arm64" : "linux-x64",
    new Map([["probe", bytecode]]),
    executable,
  );
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true }));

test("a program sees the same language and globals as under Bun", () => {
  expect(JSON.parse(execFileSync(executable, { encoding: "utf8" }))).toEqual(
    JSON.parse(JSON.stringify(probe())),
  );
});

test("endless recursion is an error that can be caught, on a small stack too", () => {
  for (const size of ["unlimited", "8192", "256"]) {
    const { stdout, signal } = spawnSync("sh", ["-c", `ulimit -s ${size} && exec "$0" recurse`, executable]);
    expect([signal, stdout.toString()]).toEqual([null, "InternalError"]);
  }
});

test("the executable needs no library, and is small", () => {
  expect(spawnSync("ldd", [executable], { encoding: "utf8" }).stderr).toContain("not a dynamic executable");
  expect(statSync(executable).size).toBeLessThan(2 << 20);
});

test("a name that it does not hold ends in an error, not in a crash", () => {
  const { signal, status } = spawnSync(executable, { argv0: "other" });
  expect([signal, status]).toEqual([null, 70]);
});
