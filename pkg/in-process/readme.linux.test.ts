import { rmSync } from "node:fs";
import { join } from "node:path";
import { makeNamespace, temporaryFolder } from "@tscni/test-support";
import { expect, test } from "vitest";
import { codeIn, folderBeside, runExample, saidIn } from "../runtime/testing.ts";

test("README's example runs, and prints what it says", () => {
  const files = temporaryFolder();
  const container = makeNamespace("in-process-readme");
  const folder = folderBeside(import.meta.dirname);
  try {
    const code = codeIn(join(import.meta.dirname, "README.md"))
      .replaceAll("/opt/cni/bin", join(files.path, "none"))
      .replaceAll("/var/lib/cni", files.path)
      .replaceAll("cni0", "inprocdoc0")
      .replaceAll("/run/netns/c1", container.path);
    const said = saidIn(code);
    expect(said).toHaveLength(1);
    expect(runExample(folder, code)).toEqual(said);
  } finally {
    Bun.spawnSync(["ip", "link", "del", "inprocdoc0"]);
    container.close();
    files.remove();
    rmSync(folder, { recursive: true, force: true });
  }
});
