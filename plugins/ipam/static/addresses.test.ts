import { cidrText, ipText } from "@tscni/addr";
import { decodeConf } from "@tscni/conf";
import { describe, expect, test } from "vitest";
import { addressesOf } from "./addresses.ts";
import { StaticConf } from "./conf.ts";

const parse = (own: object) => decodeConf(StaticConf, { name: "n", type: "static", ...own });
const configured = {
  ipam: {
    type: "static",
    addresses: [{ address: "10.10.0.1/24", gateway: "10.10.0.254" }, { address: "fd10:0::1/64" }],
  },
};
const texts = (own: object, args = "", cniVersion = "1.1.0") =>
  addressesOf(parse(own), args, cniVersion).map(
    ({ cidr, gateway }) => cidrText(cidr) + (gateway ? ` via ${ipText(gateway)}` : ""),
  );

test.each([
  [
    "of the config, host bits kept, in canonical text",
    configured,
    "",
    ["10.10.0.1/24 via 10.10.0.254", "fd10::1/64"],
  ],
  ["none at all", { ipam: {} }, "", []],
  [
    "IP of CNI_ARGS adds to them",
    configured,
    "IP=10.20.0.2/16, fd20::2/64",
    ["10.10.0.1/24 via 10.10.0.254", "fd10::1/64", "10.20.0.2/16", "fd20::2/64"],
  ],
  [
    "GATEWAY of CNI_ARGS is of every address whose subnet has it",
    configured,
    "IP=10.20.0.2/16;GATEWAY=10.20.0.1,fd10::ff,10.10.0.7",
    ["10.10.0.1/24 via 10.10.0.7", "fd10::1/64 via fd10::ff", "10.20.0.2/16 via 10.20.0.1"],
  ],
  [
    "args.cni.ips replaces these",
    { ...configured, args: { cni: { ips: ["10.30.0.3/24"] } } },
    "IP=10.20.0.2/16",
    ["10.30.0.3/24"],
  ],
  [
    "the capability replaces all",
    { ...configured, args: { cni: { ips: ["10.30.0.3/24"] } }, runtimeConfig: { ips: ["fd40::4/64"] } },
    "",
    ["fd40::4/64"],
  ],
  [
    "empty lists replace nothing",
    { ...configured, args: { cni: { ips: [] } }, runtimeConfig: { ips: [] } },
    "",
    ["10.10.0.1/24 via 10.10.0.254", "fd10::1/64"],
  ],
])("%s", (_, own, args, expected) => {
  expect(texts(own, args)).toEqual(expected);
});

describe("what is refused, with code and message", () => {
  const notCidr = (text: string) => `an entry in the 'ips' field is NOT in CIDR notation, got: '${text}'`;
  const addresses = (...list: string[]) => ({ ipam: { addresses: list.map((address) => ({ address })) } });
  test.each([
    [{}, "", 7, "IPAM config missing 'ipam' key"],
    [addresses("10.0.0.1"), "", 7, 'ipam.addresses[0].address: "10.0.0.1" is not a CIDR address'],
    [{ ipam: { addresses: [{}] } }, "", 6, /ipam\.addresses\[0\]\.address/],
    [{ ipam: {}, args: { cni: { ips: ["10.0.0.1"] } } }, "", 7, `args.cni.ips[0]: ${notCidr("10.0.0.1")}`],
    [{ ipam: {}, runtimeConfig: { ips: ["x"] } }, "", 7, `runtimeConfig.ips[0]: ${notCidr("x")}`],
    [
      { ipam: {} },
      "IP=10.0.0.1",
      4,
      "CNI_ARGS: the 'ip' field is expected to be in CIDR notation, got: '10.0.0.1'",
    ],
    [{ ipam: {} }, "GATEWAY=10.0.0", 4, "CNI_ARGS: invalid gateway address: 10.0.0"],
    [{ ipam: {} }, "ip=10.0.0.1/8", 4, 'ARGS: unknown args ["ip=10.0.0.1/8"]'],
  ])("%j %s", (own, args, code, msg) => {
    const expected = expect.objectContaining({
      code,
      msg: typeof msg === "string" ? msg : expect.stringMatching(msg),
    });
    expect(() => texts(own, args)).toThrow(expected);
  });

  test("two addresses of a family in a version whose results have room for one", () => {
    const two = addresses("10.0.0.1/8", "10.0.0.2/8");
    const msg = "CNI version 0.2.0 does not support more than 1 address per family";
    expect(() => texts(two, "", "0.2.0")).toThrow(expect.objectContaining({ code: 7, msg }));
    expect(texts(two, "", "0.3.0")).toHaveLength(2);
  });
});
