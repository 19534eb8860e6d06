import { decodeConf } from "@tscni/conf";
import { describe, expect, test } from "vitest";
import { MacvlanConf, modeOf } from "./conf.ts";

const parse = (own: object) => decodeConf(MacvlanConf, { name: "n", type: "macvlan", ...own });

test("defaults", () => {
  expect(parse({})).toMatchObject({ master: "", mode: "", mtu: 0, linkInContainer: false, bcqueuelen: 0 });
});

test.each([
  ["", 4],
  ["bridge", 4],
  ["private", 1],
  ["vepa", 2],
  ["passthru", 8],
])('mode "%s" is MACVLAN_MODE %i', (mode, expected) => {
  expect(modeOf(parse({ mode }))).toBe(expected);
});

describe("what is refused, with code and message", () => {
  test.each([
    [
      { mode: "Bridge" },
      7,
      'mode: unknown macvlan mode: "Bridge": it can be private, vepa, bridge or passthru',
    ],
    [
      { mode: "toString" },
      7,
      'mode: unknown macvlan mode: "toString": it can be private, vepa, bridge or passthru',
    ],
    [{ mtu: -1 }, 7, "mtu: -1 is not between 0 and 65535"],
    [{ bcqueuelen: 2 ** 32 }, 7, "bcqueuelen: 4294967296 is not between 0 and 4294967295"],
    [{ mac: "02:00" }, 7, 'mac: "02:00" is not a MAC address'],
    [{ runtimeConfig: { mac: 5 } }, 6, "runtimeConfig.mac: 5 is not a string"],
  ])("%j", (own, code, msg) => {
    expect(() => parse(own)).toThrow(expect.objectContaining({ code, msg }));
  });
});

test("DEL takes any of these", () => {
  const wrong = { mode: "x", mtu: "big", mac: 5, bcqueuelen: -1 };
  const conf = decodeConf(MacvlanConf, { name: "n", ...wrong }, { lenient: () => {} });
  expect(modeOf(conf)).toBe(4);
});
