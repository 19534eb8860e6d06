import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { objectsFor } from "./objects.ts";
import { cached, cc, nativeTarget } from "./zig.ts";

/** What the engine has beyond ECMAScript 2020, so that esbuild leaves it as it is. */
const supported = {
  "class-field": true,
  "class-static-field": true,
  "class-private-field": true,
  "class-private-method": true,
  "class-private-static-field": true,
  "logical-assignment": true,
};

/** What stands in for modules that need Node or Bun, each with the few functions that plugins get to use. */
const instead = (name: string): string => join(import.meta.dirname, "instead", `${name}.ts`);
const alias = {
  "node:fs": instead("fs"),
  "node:os": instead("os"),
  "node:path": instead("path"),
  "@tscni/exec": instead("exec"),
};

/** One script of a program and all that it imports, behind the globals that it may use. */
async function bundle(entry: string): Promise<string> {
  const result = await build({
    entryPoints: [entry],
    inject: [join(import.meta.dirname, "globals.ts")],
    bundle: true,
    minify: true,
    write: false,
    format: "esm", // a module's variables are found by number, a function's by search: 1.4 ms of a start
    platform: "neutral",
    target: "es2020",
    supported,
    alias,
    conditions: ["quickjs", "bun"],
    logLevel: "error",
  });
  return result.outputFiles[0]!.text;
}

/** What Bun and Node have and globals.ts does not offer, as far as anyone is tempted to use it. */
const absent = [
  "AbortController AbortSignal Atomics Buffer Intl SharedArrayBuffer URL URLSearchParams WeakRef console fetch",
  "performance queueMicrotask require setImmediate setInterval structuredClone",
].flatMap((names) => names.split(" "));
const offered = new Set("Bun.CryptoHasher Bun.FFI Bun.nanoseconds Bun.sleepSync".split(" "));

/** Fails when a program uses a global that the engine does not have; better now than on a node. */
function checkGlobals(name: string, script: string): void {
  const free = script.match(/(?<![\w$.#"'`])(?:Bun\.\w+|[A-Za-z]\w+(?=[.(]))/g) ?? [];
  const used = [...new Set(free)].filter((global) =>
    global.startsWith("Bun.") ? !offered.has(global) : absent.includes(global),
  );
  if (used.length > 0)
    throw new Error(
      `${name}: plugins run without ${used.join(", ")}; pkg/engine/globals.ts says what there is`,
    );
}

/** The compiler of this machine: what it writes is the same for every (little-endian) target. */
async function compiler(): Promise<string> {
  const objects = await objectsFor(nativeTarget, ["-DCOMPILE"]);
  const folder = await cached("compiler", objects, (work) =>
    cc(nativeTarget, ["-static", "-s", ...objects, "-lm", "-o", join(work, "compile")]),
  );
  return join(folder, "compile");
}

/**
 * Compiles a program to bytecode.
 * @param entry path of the module that starts it
 * @param folder where `<name>.js` and `<name>.bytecode` are left
 * @returns the path of the bytecode
 */
export async function compileProgram(name: string, entry: string, folder: string): Promise<string> {
  const [script, compile] = [await bundle(entry), await compiler()];
  const [source, bytecode] = [join(folder, `${name}.js`), join(folder, `${name}.bytecode`)];
  checkGlobals(name, script);
  // QuickJS's word for leaving out what only stack traces need: a quarter of what every start reads.
  writeFileSync(source, `"use strip";\n${script}`);
  execFileSync(compile, [source, bytecode], { stdio: ["ignore", "inherit", "inherit"] });
  return bytecode;
}
