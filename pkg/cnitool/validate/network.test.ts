import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { checkNetworkFile } from "./network.ts";

const dir = mkdtempSync(join(tmpdir(), "cnitool-validate-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function check(name: string, content: string | Uint8Array) {
  const file = join(dir, name);
  writeFileSync(file, content);
  return checkNetworkFile(file, undefined).files.flatMap((f) => f.problems);
}

/** Configs with keys that mean something and values that may be anything. */
const key = fc.constantFrom(
  "cniVersion",
  "cniVersions",
  "name",
  "plugins",
  "type",
  "ipam",
  "dns",
  "capabilities",
  "args",
  "x",
);
const anything = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, 0, -1.5, "", "net", "1.0.0", "bridge", "../x", "\u0000"),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(key, tie("value"), { maxKeys: 5 }),
  ),
})).value;

test("whatever stands in a file, every problem has a place in it and a message", () => {
  fc.assert(
    fc.property(anything, fc.constantFrom("a.conflist", "a.conf"), (value, name) => {
      for (const problem of check(name, JSON.stringify(value, null, 1))) {
        expect(problem.message).not.toBe("");
        expect(problem.line).toBeGreaterThan(0);
        expect(problem.column).toBeGreaterThan(0);
      }
    }),
    { numRuns: 500 },
  );
});

test("random bytes and cut-off files are reported, not thrown", () => {
  const good = JSON.stringify({ cniVersion: "1.0.0", name: "n", plugins: [{ type: "bridge", ipam: {} }] });
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 50 }), fc.nat(good.length - 1), (bytes, cut) => {
      expect(check("b.conflist", bytes).length).toBeGreaterThan(0);
      expect(check("b.conflist", good.slice(0, cut))[0]!.message).toMatch(/^not JSON: /);
    }),
  );
  expect(check("b.conflist", good)).toEqual([]);
});

test("ten megabytes of plugins are checked in reasonable time", () => {
  const plugin = { type: "bridge", capabilities: { mac: true }, note: "x".repeat(900) };
  const plugins = Array.from({ length: 10_000 }, () => plugin);
  expect(check("big.conflist", JSON.stringify({ cniVersion: "1.0.0", name: "big", plugins }))).toEqual([]);
  const wrong = Array.from({ length: 50_000 }, () => ({ type: 7, type2: "../x", capabilities: { a: 1 } }));
  const text = JSON.stringify({ cniVersion: "1.0.0", name: "big", plugins: wrong }, null, 1);
  expect(check("big.conflist", text).length).toBeGreaterThanOrEqual(100_000);
}, 20_000);
