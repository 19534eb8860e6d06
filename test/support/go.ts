import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "./paths.ts";

/** Where the Go reference plugins are, if anywhere: scripts/test installs them into the first folder. */
const folders = [join(root, ".cache/go-bin"), "/tmp/gobin"];

/**
 * A Go reference plugin (or cnitool), or undefined when this machine has none. TSCNI_GO_BIN names the folder;
 * then it must be there.
 */
export function findGoBin(name: string): string | undefined {
  const named = process.env.TSCNI_GO_BIN;
  const path = (named ? [named] : folders).map((folder) => join(folder, name)).find(existsSync);
  if (named && path === undefined) throw new Error(`TSCNI_GO_BIN=${named} has no ${name}`);
  return path;
}

/** The same for use within a test, which is skipped, with the reason, when there is none. */
export function goBin(name: string, test: { skip(note?: string): never }): string {
  return (
    findGoBin(name) ?? test.skip(`no Go ${name} in ${folders.join(" or ")}; TSCNI_GO_BIN names a folder`)
  );
}
