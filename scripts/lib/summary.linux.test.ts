import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, temporaryFolder } from "@tscni/test-support";
import { expect, test } from "vitest";

/** The last line of the summary of some results, its exit status, and all of it. */
function summary(...results: [state: string, lane: string, test: string, reason?: string][]) {
  const folder = temporaryFolder();
  const file = join(folder.path, "results");
  writeFileSync(file, results.map((fields) => `${[...fields, ""].slice(0, 4).join("\t")}\n`).join(""));
  const script = join(root, "scripts/lib/summary.awk");
  const { exitCode, stdout } = Bun.spawnSync(["awk", "-f", script, file, file]);
  folder.remove();
  const text = stdout.toString();
  return { exitCode, text, counts: text.trimEnd().split("\n").at(-1) };
}

const lacks = "the kernel lacks vlan (CONFIG_VLAN_8021Q)";

test("counts, and lists what was skipped and what failed", () => {
  const { exitCode, text, counts } = summary(
    ["passed", "bun", "a"],
    ["failed", "bun", "b", "why"],
    ["skipped", "bun", "c", "no reason"],
  );
  expect(counts).toBe("1 passed, 1 failed, 1 skipped");
  expect(text).toContain("bun: b: why");
  expect(text).toContain("bun: c: no reason");
  expect(exitCode).toBe(1);
  expect(summary().exitCode, "nothing passed").toBe(1);
});

test("what the kernel lacks counts once, as what it did in the virtual machine", () => {
  const host: Parameters<typeof summary> = [
    ["skipped", "bun", "a", lacks],
    ["passed", "bun", "b"],
    ["skipped", "bun", "c", "no root"],
  ];
  expect(summary(...host).counts, "without one").toBe("1 passed, 0 failed, 2 skipped");
  const passed = summary(...host, ["passed", "vm", "a"], ["passed", "vm", "b"], ["skipped", "vm", "c", "x"]);
  expect(passed).toMatchObject({ counts: "2 passed, 0 failed, 1 skipped", exitCode: 0 });
  const failed = summary(...host, ["failed", "vm", "a", "why"], ["passed", "vm", "b"]);
  expect(failed).toMatchObject({ counts: "1 passed, 1 failed, 1 skipped", exitCode: 1 });
  expect(failed.text).toContain("vm: a: why");
  const skipped = summary(...host, ["skipped", "vm", "a", "no Go"]);
  expect(skipped.counts).toBe("1 passed, 0 failed, 2 skipped");
});

test("a failure in the virtual machine of what passed here is one more", () => {
  const results = summary(["passed", "bun", "a"], ["failed", "vm", "a", "older kernel"]);
  expect(results).toMatchObject({ counts: "1 passed, 1 failed, 0 skipped", exitCode: 1 });
});
