import { join } from "node:path";
import { expect, test } from "vitest";

const quickstart = join(import.meta.dirname, "../quickstart");

test("what scripts/quickstart shows on a fresh machine works, to the last step", () => {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["unshare", "-nm", quickstart, "--inside"], {
    stdin: "ignore",
    timeout: 60_000,
  });
  const said = `${stdout}${stderr}`;
  expect(said).toMatch(/ping red from blue, IPv4.*bytes from 10\.22\.0\.3.*bytes from fd22::3/s);
  expect(said).toMatch(/Nothing is attached\..*of the containers: nothing/s);
  expect(exitCode, said).toBe(0);
});
