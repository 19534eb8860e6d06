import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { objectsFor } from "./objects.ts";
import { cc } from "./zig.ts";

/** What an executable can be made for. It is static: whatever C library the machine has does not matter. */
export const engineTargets = {
  "linux-x64": "x86_64-linux-musl",
  "linux-arm64": "aarch64-linux-musl",
} as const;
export type EngineTarget = keyof typeof engineTargets;

/**
 * Links an executable out of the engine and programs: name to the path of its bytecode.
 * @param outfile the executable; beside it `<outfile>.S` is left
 */
export async function linkExecutable(
  target: EngineTarget,
  programs: ReadonlyMap<string, string>,
  outfile: string,
): Promise<void> {
  const zigTarget = engineTargets[target];
  const table = `${outfile}.S`;
  writeFileSync(table, assembly(programs));
  const objects = await objectsFor(zigTarget);
  await cc(zigTarget, ["-static", "-s", "-Wl,--gc-sections", ...objects, table, "-lm", "-o", outfile]);
}

/** The table `programs` of main.c, and what it points to. */
function assembly(programs: ReadonlyMap<string, string>): string {
  const data: string[] = [];
  const rows: string[] = [];
  for (const [i, [name, path]] of [...programs].entries()) {
    // Zig's cache knows an assembly file by its text alone, so what it takes in has to show there.
    const content = createHash("sha256").update(readFileSync(path)).digest("hex");
    data.push(
      `/* ${content} */`,
      `name${i}: .asciz ${JSON.stringify(name)}`,
      ".balign 16",
      `start${i}: .incbin ${JSON.stringify(path)}`,
      `end${i}:`,
    );
    rows.push(`.quad name${i}, start${i}, end${i}`);
  }
  return `${[
    '.section .rodata.programs,"a"',
    ...data,
    ".balign 8",
    ".global programs",
    "programs:",
    ...rows,
    ".global program_count",
    `program_count: .quad ${programs.size}`,
    '.section .note.GNU-stack,"",@progbits',
  ].join("\n")}\n`;
}
