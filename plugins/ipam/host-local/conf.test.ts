import { ipText } from "@tscni/addr";
import { decodeConf } from "@tscni/conf";
import { CniError } from "@tscni/types";
import { expect, test } from "vitest";
import { HostLocalConf } from "./conf.ts";
import { rangeSetsOf, rangeSetText, sizeOf } from "./ranges.ts";
import { requestedIps } from "./requests.ts";
import { parseResolvConf } from "./resolv.ts";

const conf = (json: object) => decodeConf(HostLocalConf, { name: "n", ...json });
const setsOf = (json: object, version = "1.0.0") => rangeSetsOf(conf(json), version).map(rangeSetText);
const failure = (work: () => unknown): CniError => {
  try {
    work();
  } catch (error) {
    if (error instanceof CniError) return error;
    throw error;
  }
  throw new Error("no failure");
};

test("the runtime's ranges come first, then the single range, then the sets", () => {
  expect(
    setsOf({
      ipam: { subnet: "10.1.0.0/24", ranges: [[{ subnet: "10.2.0.0/24" }, { subnet: "10.3.0.0/24" }]] },
      runtimeConfig: {
        ipRanges: [[{ subnet: "10.4.0.0/24", rangeStart: "10.4.0.9", rangeEnd: "10.4.0.9" }]],
      },
    }),
  ).toEqual(["10.4.0.9-10.4.0.9", "10.1.0.1-10.1.0.254", "10.2.0.1-10.2.0.254,10.3.0.1-10.3.0.254"]);
});

test("ipRanges may be a flat list, as go-cni sends it, and keys come in any case", () => {
  const flat = { runtimeConfig: { IPRanges: [{ Subnet: "10.1.0.0/24" }, { SUBNET: "fd00::/64" }] } };
  expect(setsOf({ ipam: {}, ...flat })).toEqual(["10.1.0.1-10.1.0.254", "fd00::1-fd00::ffff:ffff:ffff:ffff"]);
  const nested = { runtimeConfig: { IPRanges: [[{ Subnet: "10.1.0.0/24", RangeStart: "10.1.0.7" }]] } };
  expect(setsOf({ ipam: {}, ...nested })).toEqual(["10.1.0.7-10.1.0.254"]);
});

test('an address that is "" is one that is not given', () => {
  expect(setsOf({ ipam: { subnet: "10.1.0.0/24", rangeStart: "", rangeEnd: "", gateway: "" } })).toEqual([
    "10.1.0.1-10.1.0.254",
  ]);
});

test("the gateway does not count among the addresses of a set", () => {
  const size = (ipam: object) => sizeOf(rangeSetsOf(conf({ ipam }), "1.0.0")[0]!);
  expect(size({ subnet: "10.1.0.0/24" })).toBe(253n);
  expect(size({ subnet: "10.1.0.0/24", rangeStart: "10.1.0.5", rangeEnd: "10.1.0.5" })).toBe(1n);
  expect(size({ subnet: "fd00::/64" })).toBe(2n ** 64n - 2n);
});

test.each([
  [
    { subnet: "10.1.0.5/24" },
    "invalid range set 0: Network has host bits set. For a subnet mask of length 24 the network address is 10.1.0.0",
  ],
  [{ subnet: "10.1.0.0/31" }, "invalid range set 0: Network 10.1.0.0/31 too small to allocate from"],
  [{ subnet: "fd00::/127" }, "invalid range set 0: Network fd00::/127 too small to allocate from"],
  [
    { subnet: "10.1.0.0/24", rangeStart: "10.2.0.1" },
    "invalid range set 0: RangeStart 10.2.0.1 not in network 10.1.0.0/24",
  ],
  [
    { subnet: "10.1.0.0/24", rangeEnd: "10.2.0.1" },
    "invalid range set 0: RangeEnd 10.2.0.1 not in network 10.1.0.0/24",
  ],
  [
    { subnet: "10.1.0.0/24", rangeStart: "10.1.0.9", rangeEnd: "10.1.0.8" },
    "invalid range set 0: RangeStart 10.1.0.9 not in network 10.1.0.0/24",
  ],
  [
    { subnet: "10.1.0.0/24", rangeEnd: "10.1.0.0" },
    "invalid range set 0: RangeEnd 10.1.0.0 not in network 10.1.0.0/24",
  ],
  [{ ranges: [[]] }, "invalid range set 0: empty range set"],
  [
    { ranges: [[{ subnet: "10.1.0.0/24" }, { subnet: "fd00::/64" }]] },
    "invalid range set 0: mixed address families",
  ],
  [
    { ranges: [[{ subnet: "10.1.0.0/24" }, { subnet: "10.1.0.0/25" }]] },
    "invalid range set 0: subnets 10.1.0.1-10.1.0.254 and 10.1.0.1-10.1.0.126 overlap",
  ],
  [
    { subnet: "10.1.0.0/24", ranges: [[{ subnet: "10.2.0.0/24" }], [{ subnet: "10.0.0.0/8" }]] },
    "range set 0 overlaps with 2",
  ],
])("%j: %s", (ipam, message) => {
  expect(failure(() => setsOf({ ipam }))).toMatchObject({ code: 7, msg: message });
});

test("versions before 0.3.0 allow one address of each family", () => {
  const ipam = { ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "10.2.0.0/24" }]] };
  expect(failure(() => setsOf({ ipam }, "0.2.0")).msg).toBe(
    "CNI version 0.2.0 does not support more than 1 address per family",
  );
  expect(setsOf({ ipam }, "0.3.0")).toHaveLength(2);
  expect(
    setsOf({ ipam: { subnet: "10.1.0.0/24", ranges: [[{ subnet: "fd00::/64" }]] } }, "0.2.0"),
  ).toHaveLength(2);
});

test("wrong values are named with their path", () => {
  expect(failure(() => conf({ ipam: { ranges: [[{ subnet: "10.1.0.300/24" }]] } }))).toMatchObject({
    code: 7,
    msg: 'ipam.ranges[0][0].subnet: "10.1.0.300/24" is not a CIDR address',
  });
  expect(failure(() => conf({ ipam: { cooldown: -1 } })).msg).toBe("ipam.cooldown: -1 is below 0");
  expect(failure(() => conf({ runtimeConfig: { ips: ["x"] } })).msg).toBe(
    'runtimeConfig.ips[0]: "x" is not an IP address',
  );
  expect(failure(() => conf({ runtimeConfig: { ipRanges: [[{ subnet: "x" }]] } })).msg).toBe(
    'runtimeConfig.ipRanges[0][0].subnet: "x" is not a CIDR address',
  );
});

test("requested addresses add up from all three sources, each once, prefix lengths aside", () => {
  const requested = requestedIps(
    conf({
      args: { cni: { ips: ["10.1.0.6/8", "fd00::0:7"] } },
      runtimeConfig: { ips: ["10.1.0.5", "10.1.0.8"] },
    }),
    "IgnoreUnknown=1;K8S_POD_NAME=x;IP=10.1.0.5/24",
  );
  expect(requested.map(ipText)).toEqual(["10.1.0.5", "10.1.0.6", "fd00::7", "10.1.0.8"]);
  expect(requestedIps(conf({}), "IP=")).toEqual([]);
});

test.each([
  ["IP=10.1.0.300", 'ARGS: IP: "10.1.0.300" is not an IP address'],
  ["IP", 'ARGS: invalid pair "IP"'],
  ["ip=10.1.0.3", 'ARGS: unknown args ["ip=10.1.0.3"]'],
])("CNI_ARGS %s: %s", (args, message) => {
  expect(failure(() => requestedIps(conf({}), args))).toMatchObject({ code: 4, msg: message });
});

test("resolv.conf", () => {
  expect(
    parseResolvConf(
      "# note\n;other\nnameserver 10.0.0.1\n nameserver\tfd00::1 \nnameserver\ndomain a\ndomain b\nsearch x y\nsearch z\noptions ndots:5 rotate\nsortlist 1\n",
    ),
  ).toEqual({
    nameservers: ["10.0.0.1", "fd00::1"],
    domain: "b",
    search: ["x", "y", "z"],
    options: ["ndots:5", "rotate"],
  });
  expect(parseResolvConf("")).toEqual({});
});
