import { globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { distBin, root } from "@tscni/test-support";
import { expect, test } from "vitest";

const examples = readdirSync(import.meta.dirname).filter((name) => name.endsWith(".conflist"));

test.each(examples)("%s: nothing is wrong with it, not even a warning", (name) => {
  const { exitCode, stdout } = Bun.spawnSync(
    [join(distBin, "cnitool"), "validate", "--strict", "--json", name],
    {
      cwd: import.meta.dirname,
      env: { CNI_PATH: distBin },
    },
  );
  expect(JSON.parse(stdout.toString())).toMatchObject({ valid: true, problems: [], pluginsLookedUp: true });
  expect(exitCode).toBe(0);
});

test("README shows the example as it is", () => {
  const example = readFileSync(join(import.meta.dirname, "10-bridge.conflist"), "utf8");
  expect(readFileSync(join(root, "README.md"), "utf8")).toContain(`\`\`\`json\n${example}\`\`\``);
});

const readmes = globSync("plugins/*/*/README.md", { cwd: root }).filter((path) =>
  readFileSync(join(root, path), "utf8").includes("examples/"),
);

test.each(readmes)("%s shows the examples that it leads to as they are", (path) => {
  const text = readFileSync(join(root, path), "utf8");
  for (const [, name] of text.matchAll(/\[examples\/([\w.-]+)\]\(/g))
    expect(text).toContain(`\`\`\`json\n${readFileSync(join(import.meta.dirname, name!), "utf8")}\`\`\``);
});
