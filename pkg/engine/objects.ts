import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { returnNames, symbols } from "@tscni/sys/symbols";
import { cached, cc, compilerName, host, root, textsIn } from "./zig.ts";

/** QuickJS of 2021-03-27, Bellard's own sources, as the npm package of its compiler carries them. */
const quickjs = join(root, "node_modules/qjsc/deps/quickjs_2021_03_27");
const quickjsFiles = ["quickjs", "libregexp", "libunicode", "cutils", "libbf"];
const hostFiles = ["main", "native", "alloc", "hash"];

const optimise = ["-O2", "-DNDEBUG", "-fno-sanitize=undefined", "-ffunction-sections", "-fdata-sections"];
const quickjsFlags = ["-w", "-D_GNU_SOURCE", "-DCONFIG_BIGNUM", '-DCONFIG_VERSION="2021-03-27"'];
const hostFlags = [
  "-std=gnu11",
  "-Wall",
  "-Wextra",
  "-Werror",
  "-Wno-cast-function-type",
  `-isystem${quickjs}`,
];

/** The rows of native.c's table: what pkg/sys declares. */
function symbolTable(): string {
  const rows = Object.entries(symbols).map(
    ([name, { returns }]) => `  {"${name}", (void *)${name}, ${returnNames[returns]}},\n`,
  );
  return rows.join("");
}

/** Headers that declare the functions in the table. */
const headers =
  "dirent errno fcntl grp poll pwd sched signal spawn stdio string sys/file sys/ioctl sys/mman sys/mount sys/signalfd sys/socket \
sys/stat sys/syscall sys/un sys/wait time unistd".split(" ");

/** The engine's object files for a target, compiled if they are not there yet: about 15 s, once. */
async function quickjsObjects(target: string): Promise<string[]> {
  const flags = [...optimise, ...quickjsFlags];
  const folder = await cached(
    `quickjs-${target}`,
    [compilerName, ...flags, ...textsIn(quickjs)],
    async (work) => {
      const compile = (name: string) =>
        cc(target, [...flags, "-c", join(quickjs, `${name}.c`), "-o", join(work, `${name}.o`)]);
      await Promise.all(quickjsFiles.map(compile));
    },
  );
  return quickjsFiles.map((name) => join(folder, `${name}.o`));
}

/** The objects of our own part; with `-DCOMPILE` among the extra flags that of the bytecode compiler. */
async function hostObjects(target: string, extra: readonly string[]): Promise<string[]> {
  const flags = [...optimise, ...hostFlags, ...extra];
  const includes = headers.map((name) => `#include <${name}.h>\n`).join("");
  const ingredients = [
    compilerName,
    ...flags,
    includes,
    symbolTable(),
    ...textsIn(host),
    ...textsIn(quickjs),
  ];
  const folder = await cached(`host-${target}`, ingredients, async (work) => {
    writeFileSync(join(work, "symbols.h"), symbolTable());
    writeFileSync(join(work, "headers.h"), includes);
    const compile = (name: string) =>
      cc(target, [...flags, `-I${work}`, "-c", join(host, `${name}.c`), "-o", join(work, `${name}.o`)]);
    await Promise.all(hostFiles.map(compile));
  });
  return hostFiles.map((name) => join(folder, `${name}.o`));
}

/** All object files of an executable for a target but its programs. */
export async function objectsFor(target: string, extra: readonly string[] = []): Promise<string[]> {
  const [ours, theirs] = await Promise.all([hostObjects(target, extra), quickjsObjects(target)]);
  return [...ours, ...theirs];
}
