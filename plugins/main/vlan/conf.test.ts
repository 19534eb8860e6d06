import { decodeConf } from "@tscni/conf";
import { expect, test } from "vitest";
import { VlanConf } from "./conf.ts";

test("defaults", () => {
  expect(decodeConf(VlanConf, { MASTER: "eth0" })).toMatchObject({
    master: "eth0",
    vlanId: 0,
    mtu: 0,
    linkInContainer: false,
  });
});

test.each<[object, string]>([
  [{}, '"master" field is required. It specifies the host interface name to create the VLAN for'],
  [{ master: "eth0", vlanId: 4095 }, "vlanId: invalid VLAN ID 4095 (must be between 0 and 4094)"],
  [{ master: "eth0", vlanId: -1 }, "vlanId: invalid VLAN ID -1 (must be between 0 and 4094)"],
  [{ master: "eth0", mtu: -1 }, "mtu: -1 is not between 0 and 65535"],
])("%o is refused", (conf, message) => {
  expect(() => decodeConf(VlanConf, conf)).toThrow(expect.objectContaining({ msg: message, code: 7 }));
});
