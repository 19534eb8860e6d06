import { confProblems, decodeConf } from "@tscni/conf";
import { expect, test } from "vitest";
import { DhcpConf, optionCode } from "./conf.ts";
import { wishesOf } from "./options.ts";

const ipamOf = (ipam: object) => decodeConf(DhcpConf, { ipam }).ipam!;
const problems = (ipam: object) =>
  confProblems(DhcpConf, { ipam }).map(({ path, message }) => `${path}: ${message}`);

test("options have numbers, or the reference's names", () => {
  expect(["12", 12, "host-name", "routers", "254"].map(optionCode)).toEqual([12, 12, 12, 3, 254]);
  for (const bad of ["", "0", 0, 255, "256", "hostname", "1.5", "toString", -1])
    expect(optionCode(bad)).toBeUndefined();
  expect(problems({ request: [{ option: "hostname" }] })[0]).toMatch(
    /^ipam.request\[0\].option: "hostname" is not a DHCP option/,
  );
  expect(problems({ provide: [{ option: 53, value: "x" }] })[0]).toMatch(
    /is an option that the client sets itself/,
  );
  expect(problems({ provide: [{ option: 12, value: "ü".repeat(128) }] })[0]).toMatch(
    /is longer than the 255 bytes/,
  );
  expect(problems({ provide: [{ option: 12, value: "x".repeat(255) }] })).toEqual([]);
  expect(problems({ priority: -1 })).not.toEqual([]);
});

test("asked for by default: routes, mask and DNS; or what the config says alone", () => {
  expect(wishesOf(ipamOf({}), "").request).toEqual([3, 1, 6, 15, 119]);
  expect(wishesOf(ipamOf({ request: [{ option: "121" }, { option: 3 }] }), "").request).toEqual([
    121, 3, 1, 6, 15, 119,
  ]);
  expect(
    wishesOf(ipamOf({ request: [{ skipDefault: true }, { option: "subnet-mask" }] }), "").request,
  ).toEqual([1]);
  expect(wishesOf(ipamOf({ request: [{ skipDefault: true }] }), "").request).toEqual([]);
});

test("provided: from the config, then from CNI_ARGS, which nobody judges here", () => {
  const ipam = ipamOf({
    provide: [
      { option: "vendor-class-identifier", value: "v" },
      { option: "77", fromArg: "CLASS" },
      { option: "60", value: "w", fromArg: "VENDOR" },
    ],
  });
  expect(wishesOf(ipam, "junk;=;CLASS=a=b").provide).toEqual([
    [60, "w"],
    [77, "a=b"],
  ]);
  expect(wishesOf(ipam, "VENDOR=x").provide).toEqual([[60, "x"]]);
  expect(() => wishesOf(ipam, `CLASS=${"x".repeat(256)}`)).toThrow(expect.objectContaining({ code: 4 }));
});

test("a pod's name is its host name unless the config provides one, or none", () => {
  const args = "IgnoreUnknown=1;K8S_POD_NAME=web-0;NAME=other";
  const names = (ipam: object) => wishesOf(ipamOf(ipam), args).provide;
  expect(names({})).toEqual([[12, "web-0"]]);
  expect(names({ provide: [{ option: "host-name", fromArg: "NAME" }] })).toEqual([[12, "other"]]);
  expect(names({ provide: [{ option: "host-name", value: "fixed" }] })).toEqual([[12, "fixed"]]);
  expect(names({ provide: [{ option: "host-name" }] })).toEqual([]);
  expect(wishesOf(ipamOf({}), "").provide).toEqual([]);
});
