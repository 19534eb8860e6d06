import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inside, makeNamespace, type TestNamespace } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";
import { editTable, editTables, type FamilyChange, readTable, runChanges, TableChange } from "./index.ts";

const path = process.env.PATH;
let host: TestNamespace;
beforeEach(() => {
  host = makeNamespace("host");
});
afterEach(() => {
  process.env.PATH = path;
  host.close();
});

const chainsOf = (family: 4 | 6) => inside(host, () => readTable(family, "nat").chains);
const creation = (family: 4 | 6, chain: string): FamilyChange => ({
  family,
  change: new TableChange("nat").createChain(chain),
});

test("both families' tables are read, then changed; what edit returned comes back", () => {
  host.run("ip6tables", "-t", "nat", "-N", "CNI-6");
  const seen = inside(host, () =>
    editTables([4, 6], "nat", (tables) => {
      for (const { change } of tables) change.createChain("CNI-x");
      return tables.map(({ family, table }) => [family, table.has("CNI-6")]);
    }),
  );
  expect(seen).toEqual([
    [4, false],
    [6, true],
  ]);
  for (const family of [4, 6] as const) expect(chainsOf(family)).toContain("CNI-x");
});

test("a table that somebody changed after the look is looked at anew", () => {
  host.run("iptables", "-t", "nat", "-N", "CNI-x");
  const looks: boolean[] = [];
  const result = inside(host, () =>
    editTable(4, "nat", (change, table) => {
      looks.push(table.has("CNI-x"));
      if (looks.length === 1) host.run("iptables", "-t", "nat", "-X", "CNI-x");
      if (table.has("CNI-x")) change.removeChain("CNI-x");
      else change.createChain("CNI-y");
      return looks.length;
    }),
  );
  expect(looks).toEqual([true, false]);
  expect(result).toBe(2);
  expect(chainsOf(4)).toContain("CNI-y");
});

test("what is refused time after time is an error", () => {
  let looks = 0;
  expect(() =>
    inside(host, () =>
      editTable(4, "nat", (change) => {
        looks++;
        change.removeChain("CNI-x");
      }),
    ),
  ).toThrow(/iptables-restore/);
  expect(looks).toBe(5);
});

test("an edit that throws has changed nothing, and is not repeated", () => {
  let looks = 0;
  const edit = (change: TableChange) => {
    change.createChain("CNI-x");
    looks++;
    throw new Error("not this one");
  };
  expect(() => inside(host, () => editTable(4, "nat", edit))).toThrow("not this one");
  expect(looks).toBe(1);
  expect(chainsOf(4)).not.toContain("CNI-x");
});

test("where a family's table can't be read nothing is changed in the other's", () => {
  const tools = mkdtempSync(join(tmpdir(), "tscni-ipt-"));
  writeFileSync(join(tools, "ip6tables-save"), "#!/nonexistent\n", { mode: 0o755 });
  process.env.PATH = `${tools}:${path}`;
  const edit = () => editTables([4, 6], "nat", ([four]) => four!.change.createChain("CNI-x"));
  expect(() => inside(host, edit)).toThrow(/ip6tables-save is missing/);
  process.env.PATH = path;
  expect(chainsOf(4)).not.toContain("CNI-x");
});

test("one family's failure comes out when the other's change is made", () => {
  host.run("iptables", "-t", "nat", "-N", "CNI-x");
  const changes = [creation(4, "CNI-x"), creation(6, "CNI-x")];
  expect(() => inside(host, () => runChanges(changes))).toThrow(/iptables-restore/);
  expect(chainsOf(6)).toContain("CNI-x");
});
