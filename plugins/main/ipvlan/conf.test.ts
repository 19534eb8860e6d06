import { decodeConf } from "@tscni/conf";
import { expect, test } from "vitest";
import { IpvlanConf, modeOf } from "./conf.ts";

test("defaults", () => {
  expect(decodeConf(IpvlanConf, {})).toMatchObject({ master: "", mode: "", mtu: 0, linkInContainer: false });
});

test.each([
  ["", 0],
  ["l2", 0],
  ["l3", 1],
  ["l3s", 2],
])("mode %j", (mode, number) => {
  expect(modeOf(decodeConf(IpvlanConf, { mode }))).toBe(number);
});

test("a mode that there is none of is refused", () => {
  expect(() => decodeConf(IpvlanConf, { mode: "L3" })).toThrow(
    expect.objectContaining({ msg: 'mode: unknown ipvlan mode: "L3": it can be l2, l3 or l3s', code: 7 }),
  );
});
