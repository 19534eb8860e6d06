import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { disarm, disarmedNames } from "./patch.ts";

/** Where an executable can run: the names of the --target flag, and Bun's npm package for each. */
export const targets = {
  "linux-x64": "@oven/bun-linux-x64",
  "linux-arm64": "@oven/bun-linux-aarch64",
  "linux-x64-musl": "@oven/bun-linux-x64-musl",
  "linux-arm64-musl": "@oven/bun-linux-aarch64-musl",
} as const;
export type Target = keyof typeof targets;

/** The target that is this machine; Linux only. */
export function hostTarget(): Target {
  const musl = existsSync(`/lib/ld-musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`);
  const glibc = existsSync("/lib64/ld-linux-x86-64.so.2") || existsSync("/lib/ld-linux-aarch64.so.1");
  const name = `linux-${process.arch}${musl && !glibc ? "-musl" : ""}`;
  if (process.platform !== "linux" || !(name in targets)) {
    throw new Error(`no executable for ${process.platform}-${process.arch}; choose one with --target`);
  }
  return name as Target;
}

/**
 * The path of the target's Bun without the variables that make it run other code, kept under .cache. From
 * node_modules when npm installed it there, otherwise fetched by npm and checked against package-lock.json.
 */
export function baseBinary(root: string, target: Target): string {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const packageName = targets[target];
  const { version, integrity } = lock.packages[`node_modules/${packageName}`];

  const what = createHash("sha256").update(`${integrity} ${disarmedNames}`).digest("hex").slice(0, 16);
  const path = join(root, ".cache/bun", `${target}-${version}-${what}`, "bun");
  if (existsSync(path)) return path;

  const installed = join(root, "node_modules", packageName, "bin/bun");
  const original = existsSync(installed)
    ? readFileSync(installed)
    : fetchBun(root, packageName, version, integrity);
  mkdirSync(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}`;
  writeFileSync(temporary, disarm(original), { mode: 0o755 });
  renameSync(temporary, path);
  return path;
}

function fetchBun(root: string, packageName: string, version: string, integrity: string): Buffer {
  const folder = join(root, ".cache/fetch", `${packageName.replace("/", "-")}-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  try {
    const spec = `${packageName}@${version}`;
    const [{ filename }] = JSON.parse(
      run(["npm", "pack", "--json", "--pack-destination", folder, spec], root),
    );
    const archive = join(folder, filename);
    const [algorithm, expected] = splitOnce(integrity, "-");
    const actual = createHash(algorithm).update(readFileSync(archive)).digest("base64");
    if (actual !== expected)
      throw new Error(`${spec}: ${algorithm} is ${actual}, package-lock.json says ${expected}`);
    run(["tar", "-xzf", archive, "-C", folder, "package/bin/bun"], root);
    return readFileSync(join(folder, "package/bin/bun"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return [text.slice(0, at), text.slice(at + 1)];
}

/** Runs a command to its end; returns its standard output, throws when it fails. */
export function run(command: string[], cwd: string): string {
  const { exitCode, stdout } = Bun.spawnSync(command, { cwd, stderr: "inherit" });
  if (exitCode !== 0) throw new Error(`${command.slice(0, 3).join(" ")} failed with ${exitCode}\n${stdout}`);
  return stdout.toString();
}
