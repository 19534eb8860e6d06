import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  close,
  isErrno,
  isRegularFile,
  link,
  lockExclusive,
  mkdirAll,
  O,
  open,
  readDir,
  readlink,
  readTextFile,
  readTextFileIfPresent,
  readToEnd,
  replaceTextFile,
  SysError,
  setMtime,
  stat,
  statIfPresent,
  unlinkIfPresent,
  writeTextFile,
} from "./index.ts";

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "tscni-sys-"));
});
afterAll(() => rmSync(dir, { recursive: true }));

const failure = (work: () => unknown): SysError => {
  try {
    work();
  } catch (error) {
    if (error instanceof SysError) return error;
    throw error;
  }
  throw new Error("it did not fail");
};

test("a failing call names the call, the path and the errno", () => {
  const error = failure(() => open(`${dir}/missing/x`, O.RDONLY));
  expect(error).toMatchObject({ code: "ENOENT", errno: 2, call: "open", subject: `${dir}/missing/x` });
  expect(error.message).toBe(`open ${dir}/missing/x: no such file or directory`);
  expect(failure(() => open(dir, O.WRONLY)).code).toBe("EISDIR");
  expect(failure(() => readDir(`${dir}/missing`)).code).toBe("ENOENT");
  expect(isErrno(error, "EACCES", "ENOENT")).toBe(true);
  expect(isErrno(new Error("ENOENT"), "ENOENT")).toBe(false);
});

test("paths that C cannot hold are refused", () => {
  expect(failure(() => stat(`${dir}/a\0b`)).code).toBe("EINVAL");
  expect(failure(() => stat(`${dir}/${"x".repeat(5000)}`)).code).toBe("ENAMETOOLONG");
  expect(failure(() => stat(`${dir}/${"é".repeat(2100)}`)).code).toBe("ENAMETOOLONG");
});

test("reads whole files of any size, also those of /proc that say they have none", () => {
  for (const size of [0, 1, 16383, 16384, 16385, 300_000]) {
    writeFileSync(`${dir}/big`, "ä".repeat(size / 2));
    expect(readTextFile(`${dir}/big`)).toBe(readFileSync(`${dir}/big`, "utf8"));
  }
  expect(readTextFile("/proc/sys/kernel/random/boot_id")).toBe(
    readFileSync("/proc/sys/kernel/random/boot_id", "utf8"),
  );
  expect(readTextFileIfPresent(`${dir}/nothing`)).toBeUndefined();
  const fd = open("/dev/zero", O.RDONLY);
  expect(() => readToEnd(fd, 100_000)).toThrow("longer than 100000 bytes");
  close(fd);
});

test("writes with the mode asked for; replaces whole", () => {
  writeTextFile(`${dir}/new`, "one", O.WRONLY | O.CREAT | O.EXCL, 0o600);
  expect(statSync(`${dir}/new`).mode & 0o777).toBe(0o600);
  expect(failure(() => writeTextFile(`${dir}/new`, "two", O.WRONLY | O.CREAT | O.EXCL)).code).toBe("EEXIST");
  const before = stat(`${dir}/new`).ino;
  replaceTextFile(`${dir}/new`, "three");
  expect(readFileSync(`${dir}/new`, "utf8")).toBe("three");
  expect(stat(`${dir}/new`).ino).not.toBe(before);
  expect(readDir(dir).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});

test("a replacement that fails leaves the old file and nothing beside it", () => {
  mkdirAll(`${dir}/target/full`);
  expect(failure(() => replaceTextFile(`${dir}/target`, "x")).code).toBe("EISDIR");
  expect(readDir(dir).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});

test("link makes a name appear once", () => {
  writeFileSync(`${dir}/source`, "x");
  link(`${dir}/source`, `${dir}/name`);
  expect(failure(() => link(`${dir}/source`, `${dir}/name`)).code).toBe("EEXIST");
  expect(unlinkIfPresent(`${dir}/name`)).toBe(true);
  expect(unlinkIfPresent(`${dir}/name`)).toBe(false);
});

test("stat says what Node says", () => {
  writeFileSync(`${dir}/s`, "12345");
  const ours = stat(`${dir}/s`);
  const theirs = statSync(`${dir}/s`, { bigint: true });
  expect([ours.ino, ours.size, ours.mtimeNs, BigInt(ours.mode)]).toEqual([
    theirs.ino,
    theirs.size,
    theirs.mtimeNs,
    theirs.mode,
  ]);
  expect(isRegularFile(ours)).toBe(true);
  expect(statIfPresent(`${dir}/s/below`)).toBeUndefined();
  setMtime(`${dir}/s`, 1_234_567_890_123_456_789n);
  expect(stat(`${dir}/s`).mtimeNs).toBe(1_234_567_890_123_456_789n);
});

test("reads folders and links", () => {
  mkdirAll(`${dir}/d/e/f`, 0o700);
  for (let i = 0; i < 300; i++) writeFileSync(`${dir}/d/e/file-${i}`, "");
  expect(readDir(`${dir}/d/e`)).toHaveLength(301);
  symlinkSync("to/ä", `${dir}/d/l`);
  expect(readlink(`${dir}/d/l`)).toBe("to/ä");
});

test("a folder that can't be made is an error", () => {
  expect(() => mkdirAll("/proc/nowhere/at/all")).toThrow(/mkdir .*: no such file/);
});

test("a lock keeps others out until its holder is gone", async () => {
  const fd = open(`${dir}/lock`, O.RDONLY | O.CREAT, 0o750);
  lockExclusive(fd);
  const other = () => Bun.spawnSync(["flock", "--nonblock", `${dir}/lock`, "true"]).exitCode;
  expect(other()).toBe(1);
  close(fd);
  expect(other()).toBe(0);
});
