import { CniError, repairKey } from "@tscni/types";
import { expect, test } from "vitest";
import { conf, run } from "./testing.ts";

/** A plugin with a rule that may be gone, and its verbs as they were called. */
function withRule(there: boolean) {
  const log: string[] = [];
  const rule = { there };
  const plugin = {
    repair() {
      log.push("repair");
      rule.there = true;
    },
    check() {
      log.push("check");
      if (!rule.there) throw new CniError(100, "the rule is gone");
    },
  };
  return { log, plugin };
}

test("CHECK with the key repairs first, then checks", async () => {
  const { log, plugin } = withRule(false);
  const { status, stdout } = await run("CHECK", { plugin, stdin: conf("1.1.0", { [repairKey]: true }) });
  expect({ status, stdout, log }).toEqual({ status: [0], stdout: [], log: ["repair", "check"] });
});

test.each([{}, { [repairKey]: false }, { [repairKey]: "true" }, { [repairKey]: null }])(
  "CHECK with %j only checks",
  async (more) => {
    const { log, plugin } = withRule(false);
    const { status } = await run("CHECK", { plugin, stdin: conf("1.1.0", more) });
    expect({ status, log }).toEqual({ status: [1], log: ["check"] });
  },
);

test("no other verb repairs", async () => {
  const { log, plugin } = withRule(false);
  for (const verb of ["ADD", "DEL", "STATUS", "GC"])
    expect((await run(verb, { plugin, stdin: conf("1.1.0", { [repairKey]: true }) })).status).toEqual([0]);
  expect(log).toEqual([]);
});

test("what repair can't do is the error of the call", async () => {
  const plugin = {
    repair() {
      throw new CniError(5, "no iptables here");
    },
  };
  const { status, stdout } = await run("CHECK", { plugin, stdin: conf("1.1.0", { [repairKey]: true }) });
  expect(status).toEqual([1]);
  expect(JSON.parse(stdout[0]!)).toMatchObject({ code: 5, msg: "no iptables here" });
});

test("a plugin without repair just checks", async () => {
  const { seen, status } = await run("CHECK", { stdin: conf("1.1.0", { [repairKey]: true }) });
  expect(status).toEqual([0]);
  expect(seen.map(({ verb }) => verb)).toEqual(["CHECK"]);
});
