import { decodeConf } from "@tscni/conf";
import { expect, test } from "vitest";
import { VrfConf } from "./conf.ts";

test("defaults", () => {
  expect(decodeConf(VrfConf, { VrfName: "blue" })).toMatchObject({ vrfname: "blue", table: 0 });
});

test.each<[object, string]>([
  [{}, "configuration is expected to have a valid vrf name"],
  [{ vrfname: "" }, "configuration is expected to have a valid vrf name"],
  [{ vrfname: "blue/red" }, 'vrfname: "blue/red" is not an interface name'],
  [{ vrfname: "blue", table: -1 }, "table: -1 is not between 0 and 4294967295"],
])("%o is refused", (conf, message) => {
  expect(() => decodeConf(VrfConf, conf)).toThrow(expect.objectContaining({ msg: message, code: 7 }));
});
