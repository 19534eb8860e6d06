import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The repository. */
export const root = join(import.meta.dirname, "../..");

/** Where the build leaves the executable and its links; TSCNI_BIN names another place. */
export const distBin = process.env.TSCNI_BIN ?? join(root, "dist/bin");

/** A new folder of the test's own. */
export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "tscni-test-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
