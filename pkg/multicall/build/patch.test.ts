import { expect, test } from "vitest";
import { disarm } from "./patch.ts";

const names = ["BUN_INSPECT", "BUN_INSPECT_PRELOAD", "BUN_OPTIONS"];
const binary = Buffer.from(
  'RES_OPTIONS\0BUN_OPTIONS\0BUN_OPTIONSBUN_INSPECTBUN_INSPECT_PRELOAD\0process.env.BUN_INSPECT || "BUN_OPTIONS"\xff',
  "latin1",
);

test("makes every occurrence a name that no variable has, and nothing else", () => {
  const patched = disarm(binary, names).toString("latin1");
  expect(patched).toBe(
    'RES_OPTIONS\0\0UN_OPTIONS\0\0UN_OPTIONS\0UN_INSPECT\0UN_INSPECT_PRELOAD\0process.env._UN_INSPECT || "_UN_OPTIONS"\xff',
  );
  expect(patched.length).toBe(binary.length);
});

test("leaves the original as it was", () => {
  const before = Buffer.from(binary);
  disarm(binary, names);
  expect(binary.equals(before)).toBe(true);
});

test("fails when a name is not there, also when only a longer one is", () => {
  expect(() => disarm(binary, [...names, "BUN_BE_BUN"])).toThrow("does not contain BUN_BE_BUN");
  expect(() => disarm(Buffer.from("BUN_INSPECT_PRELOAD\0"), names.slice(0, 2))).toThrow("BUN_INSPECT:");
});
