import { CniError } from "@tscni/types";
import { expect, test } from "vitest";
import { attemptAll, Undo } from "./index.ts";

test("undo runs each step once", async () => {
  const done: number[] = [];
  const undo = new Undo();
  for (const step of [1, 2, 3]) undo.defer(() => void done.push(step));
  expect(await undo.run()).toEqual([]);
  expect(await undo.run()).toEqual([]);
  expect(done).toEqual([3, 2, 1]);
});

test("attemptAll goes on past failures and reports them all under the first one's code", async () => {
  const done: string[] = [];
  const fail = (code: number, msg: string) => async () => {
    throw new CniError(code, msg);
  };
  await attemptAll();
  await attemptAll(() => void done.push("a"));
  const both = attemptAll(fail(11, "link busy"), () => void done.push("b"), fail(101, "no lease"));
  await expect(both).rejects.toMatchObject({ code: 11, msg: "link busy\nno lease" });
  await expect(attemptAll(fail(11, "alone"))).rejects.toMatchObject({ code: 11, msg: "alone" });
  expect(done).toEqual(["a", "b"]);
});
