import { expect, test } from "vitest";
import { atLeast, parseVersion } from "./index.ts";

test("missing parts are 0 and order is numeric", () => {
  expect(parseVersion("1")).toEqual([1, 0, 0]);
  expect(parseVersion("1.2.3.4")).toBeUndefined();
  expect(atLeast("0.10.0", "0.9.9")).toBe(true);
  expect(atLeast("0.3.1", "0.4.0")).toBe(false);
  expect(atLeast("x", "0.1.0")).toBe(false);
});
