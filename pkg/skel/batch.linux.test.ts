import { batchKey, CniError } from "@tscni/types";
import { expect, test } from "vitest";
import { conf, run } from "./testing.ts";

const next = [
  { containerID: "c2", ifname: "eth0" },
  { containerID: "c3", ifname: "net1" },
];

/** A plugin that writes down what it deletes. */
function deleting(fails = false) {
  const log: unknown[] = [];
  const plugin = {
    del: () => void log.push("del"),
    delNext(_: unknown, also: readonly unknown[]) {
      log.push(also);
      if (fails) throw new CniError(5, "the lock is held");
    },
  };
  return { log, plugin };
}

test("a DEL that others follow is told of them first", async () => {
  const { log, plugin } = deleting();
  const { status, stderr } = await run("DEL", { plugin, stdin: conf("0.4.0", { [batchKey]: next }) });
  expect({ status, stderr, log }).toEqual({ status: [0], stderr: "", log: [next, "del"] });
});

test("alone, it is just deleted; and no other verb looks at the key", async () => {
  const { log, plugin } = deleting();
  await run("DEL", { plugin, stdin: conf("1.1.0") });
  expect(log).toEqual(["del"]);
  for (const verb of ["ADD", "CHECK", "GC", "STATUS"])
    await run(verb, { plugin, stdin: conf("1.1.0", { [batchKey]: next }) });
  expect(log).toEqual(["del"]);
});

test.each([
  [true, next, "the lock is held"],
  [false, "c2", '"c2" is not a list'],
  [false, [{ containerID: "c2" }], "is not an attachment"],
])("what goes wrong with the others is no hindrance", async (fails, value, why) => {
  const { log, plugin } = deleting(fails);
  const { status, stderr } = await run("DEL", { plugin, stdin: conf("1.1.0", { [batchKey]: value }) });
  expect(status).toEqual([0]);
  expect(log.at(-1)).toBe("del");
  expect(stderr).toMatch(/^probe: not done in one go: .*\n$/);
  expect(stderr).toContain(why);
});

test("a plugin without it just deletes", async () => {
  const { seen, status } = await run("DEL", { stdin: conf("1.1.0", { [batchKey]: next }) });
  expect({ status, verbs: seen.map(({ verb }) => verb) }).toEqual({ status: [0], verbs: ["DEL"] });
});
