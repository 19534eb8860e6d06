/**
 * Makes the executable that plugins run in: each program is bundled (esbuild), compiled to QuickJS's bytecode, and
 * linked with the engine by Zig's C compiler into one static file. Everything comes from npm: no compiler, no library
 * of the machine's is used, and the result needs none (docs/decisions/0012-quickjs-under-the-plugins.md).
 */

export { type EngineTarget, engineTargets, linkExecutable } from "./link.ts";
export { compileProgram } from "./program.ts";
