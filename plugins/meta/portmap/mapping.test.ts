import { emptyResult } from "@tscni/types";
import { describe, expect, test } from "vitest";
import { keyOf, mappingsOf, portText, targetsOf } from "./mapping.ts";

const port = (hostPort: number, more: object = {}) => ({
  hostPort,
  containerPort: 80,
  protocol: "tcp",
  hostIP: "",
  ...more,
});

describe("which address of the result ports lead to", () => {
  const interfaces = [
    { name: "br0" },
    { name: "eth0", sandbox: "/run/netns/x" },
    { name: "eth1", sandbox: "/run/netns/x" },
    { name: "eth0" },
  ];
  const addresses = (...ips: { address: string; interface?: number }[]) =>
    targetsOf([port(1)], { ...emptyResult(), interfaces, ips }, "eth0").map(({ address }) => address);

  test("the first of each family on the container's interface, IPv4 first", () => {
    expect(
      addresses(
        { address: "10.0.0.1/24", interface: 0 },
        { address: "10.0.0.7/24", interface: 3 },
        { address: "10.0.0.9/24", interface: 2 },
        { address: "fd00:0::2/64", interface: 1 },
        { address: "10.0.0.2/24", interface: 1 },
        { address: "10.0.0.3/24", interface: 1 },
        { address: "fd00::3/64", interface: 1 },
      ),
    ).toEqual(["10.0.0.2/24", "fd00::2/64"]);
  });

  test("addresses of no interface, or of one that the result does not have, count", () => {
    expect(addresses({ address: "10.0.0.2/24" })).toEqual(["10.0.0.2/24"]);
    expect(addresses({ address: "10.0.0.2/24", interface: 9 })).toEqual(["10.0.0.2/24"]);
  });

  test("none is no target, and neither is an address without a port of its family", () => {
    expect(addresses()).toEqual([]);
    const result = { ...emptyResult(), ips: [{ address: "10.0.0.2/24" }, { address: "fd00::2/64" }] };
    expect(targetsOf([port(1, { hostIP: "::1" })], result, "eth0")).toEqual([
      {
        family: 6,
        address: "fd00::2/64",
        mappings: [{ protocol: "tcp", hostIp: "::1", hostPort: 1, containerPort: 80 }],
      },
    ]);
  });
});

describe("ports of a family", () => {
  test("hostIP is of one family; an unspecified one stands for every address of its family", () => {
    const ports = [
      port(1),
      port(2, { hostIP: "0.0.0.0" }),
      port(3, { hostIP: "::" }),
      port(4, { hostIP: "FD00:0:0::1" }),
    ];
    expect(mappingsOf(ports, 4).map(portText)).toEqual(["1/tcp", "2/tcp"]);
    expect(mappingsOf(ports, 6).map(portText)).toEqual(["[fd00::1]:4/tcp", "1/tcp", "3/tcp"]);
  });

  test("one address before all addresses, otherwise in their order; the protocol in small letters", () => {
    const ports = [
      port(1, { protocol: "UDP" }),
      port(1, { hostIP: "10.0.0.1" }),
      port(2, { protocol: "" }),
      port(9, { hostIP: "10.0.0.1", protocol: "Sctp" }),
    ];
    expect(mappingsOf(ports, 4).map(portText)).toEqual([
      "10.0.0.1:1/tcp",
      "10.0.0.1:9/sctp",
      "1/udp",
      "2/tcp",
    ]);
  });

  test("of the same port twice the first counts, and a difference is told", () => {
    const told: string[] = [];
    const ports = [port(1), port(1), port(1, { containerPort: 81 }), port(1, { protocol: "udp" })];
    expect(mappingsOf(ports, 4, (message) => told.push(message))).toEqual([
      { protocol: "tcp", hostPort: 1, containerPort: 80 },
      { protocol: "udp", hostPort: 1, containerPort: 80 },
    ]);
    expect(told).toEqual(["host port 1/tcp is mapped twice; it leads to 80, not to 81"]);
  });

  test("what tells two ports apart: protocol, address, number", () => {
    const keys = [port(1), port(2), port(1, { protocol: "udp" }), port(1, { hostIP: "10.0.0.1" })]
      .flatMap((p) => mappingsOf([p], 4))
      .map(keyOf);
    expect(new Set(keys).size).toBe(4);
  });
});
