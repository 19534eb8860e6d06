import { confProblems, decodeConf } from "@tscni/conf";
import { expect, test } from "vitest";
import { FlannelConf } from "./conf.ts";
import { delegateConfOf } from "./delegate-conf.ts";
import { parseSubnetEnv } from "./subnet-env.ts";

const v4 = "FLANNEL_NETWORK=10.1.0.0/16,10.2.0.0/16,10.1.0.0/16\nFLANNEL_SUBNET=10.1.17.1/24\n";
const v6 = "FLANNEL_IPV6_NETWORK=fd01::/48\nFLANNEL_IPV6_SUBNET=fd01:0:0:7::1/64\n";
const rest = "FLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n";

test("both families, host bits cut off, each network once", () => {
  expect(parseSubnetEnv(v4 + v6 + rest, "f")).toEqual({
    networks: ["10.1.0.0/16", "10.2.0.0/16", "fd01::/48"],
    subnets: ["10.1.17.0/24", "fd01:0:0:7::/64"],
    mtu: 1450,
    ipMasq: true,
  });
  expect(parseSubnetEnv(v6 + rest, "f").subnets).toEqual(["fd01:0:0:7::/64"]);
  expect(parseSubnetEnv(`${v4}FLANNEL_MTU=0\nFLANNEL_IPMASQ=TRUE`, "f").ipMasq).toBe(false);
});

test.each([
  [
    "",
    "f is missing FLANNEL_NETWORK, FLANNEL_IPV6_NETWORK, FLANNEL_SUBNET, FLANNEL_IPV6_SUBNET, FLANNEL_MTU, FLANNEL_IPMASQ",
  ],
  ["a line without equals sign\n=\n", "f is missing FLANNEL_NETWORK"],
  [v4, "f is missing FLANNEL_MTU, FLANNEL_IPMASQ"],
  [`${v4}FLANNEL_MTU=big\nFLANNEL_IPMASQ=true`, "f: FLANNEL_MTU=big is not a number of bytes"],
  [`FLANNEL_NETWORK=10.1/16\n${rest}`, 'f: FLANNEL_NETWORK has "10.1/16", which is not a CIDR address'],
])("what is wrong is said: %j", (text, message) => {
  expect(() => parseSubnetEnv(text, "f")).toThrow(message);
});

const confOf = (more: object) =>
  delegateConfOf(decodeConf(FlannelConf, more), parseSubnetEnv(v4 + rest, "f"), {
    network: "n",
    cniVersion: "1.0.0",
  });

test("the delegate is a bridge with the node's subnet unless the config says otherwise", () => {
  expect(confOf({})).toEqual({
    name: "n",
    cniVersion: "1.0.0",
    type: "bridge",
    isGateway: true,
    ipMasq: false,
    mtu: 1450,
    ipam: {
      type: "host-local",
      ranges: [[{ subnet: "10.1.17.0/24" }]],
      routes: [{ dst: "10.1.0.0/16" }, { dst: "10.2.0.0/16" }],
    },
  });
  const given = { type: "ptp", mtu: 9000, ipMasq: true, extra: 1 };
  const ipam = { type: "other", routes: [{ dst: "1.2.3.0/24" }], dataDir: "/d" };
  const conf = confOf({ delegate: given, ipam, runtimeConfig: { mac: "x" } });
  expect(conf).toMatchObject({ ...given, runtimeConfig: { mac: "x" } });
  expect(conf).not.toHaveProperty("isGateway");
  expect(conf.ipam).toMatchObject({ type: "other", dataDir: "/d" });
  expect((conf.ipam as { routes: object[] }).routes[0]).toEqual({ dst: "1.2.3.0/24" });
});

test("a delegate may not have what flannel sets", () => {
  const problem = (delegate: unknown) => confProblems(FlannelConf, { delegate })[0]?.message;
  expect(problem({ name: "x" })).toContain(
    "'delegate' dictionary must not have 'name' field, it'll be set by flannel",
  );
  expect(problem({ ipam: {} })).toContain(
    "'delegate' dictionary must not have 'ipam' field, it'll be set by flannel",
  );
  expect(problem({ type: 7 })).toContain("7 is not a string");
});
