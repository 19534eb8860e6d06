import { statSync } from "node:fs";
import { resolve, sep } from "node:path";
import { CniError, ErrorCode } from "@tscni/types";
import { hintOf } from "./hints.ts";

/** What an executable's file name may end in: on Windows, where the separator is a backslash, also ".exe". */
const suffixes = sep === "\\" ? [".exe", ""] : [""];

/**
 * The first regular file called `type` in the folders of CNI_PATH. Whether it can be executed shows when it
 * is run. Throws CniError 999 in the Go library's words, which other programs match on.
 */
export function findPlugin(type: string, paths: readonly string[]): string {
  const missing = (msg: string) => {
    const hint = hintOf(msg);
    return new CniError(
      ErrorCode.Internal,
      msg,
      hint === undefined ? {} : { details: `what to do: ${hint}` },
    );
  };
  if (type === "") throw missing("no plugin name provided");
  if (type.includes("/") || type.includes(sep)) throw missing(`invalid plugin name: ${type}`);
  if (paths.length === 0) throw missing("no paths provided");
  // An empty entry would be the working directory, which is nobody's plugin folder.
  for (const folder of paths.filter((path) => path !== ""))
    for (const suffix of suffixes) {
      // Absolute, since a bare name would be searched for in PATH.
      const file = resolve(folder, type) + suffix;
      if (isRegularFile(file)) return file;
    }
  throw missing(`failed to find plugin ${JSON.stringify(type)} in path [${paths.join(" ")}]`);
}

function isRegularFile(file: string): boolean {
  try {
    return statSync(file).isFile();
  } catch {
    return false; // Absent, unreadable, or no name that a file could have: not here in any case.
  }
}
