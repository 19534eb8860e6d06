import { decodeResult } from "@tscni/types";
import { expect, test } from "vitest";
import { isNetworkingError } from "./index.ts";
import { setupResultOf } from "./result.ts";

const result = (json: Record<string, unknown>) => decodeResult({ cniVersion: "1.1.0", ...json }, "1.1.0");

test("results of several networks: interfaces by name, dns for each network, all routes, in the networks' order", () => {
  const first = result({
    interfaces: [{ name: "cni0" }, { name: "eth0", sandbox: "/n", mtu: 1400 }],
    ips: [{ interface: 1, address: "10.0.0.2/24", gateway: "10.0.0.1" }],
    routes: [{ dst: "0.0.0.0/0" }],
  });
  const second = result({
    interfaces: [
      { name: "cni0", mac: "02:00:00:00:00:02" },
      { name: "net1", pciID: "0000:00:1f.6", sandbox: "/n" },
    ],
    ips: [{ interface: 1, address: "fd00::2/64" }, { address: "10.9.9.9/32" }],
    routes: [{ dst: "::/0" }],
    dns: { nameservers: ["fd00::53"] },
  });
  expect(setupResultOf([first, second], "eth0")).toEqual({
    interfaces: {
      // Both networks have it; what the later one says counts.
      cni0: { addresses: [], mac: "02:00:00:00:00:02" },
      eth0: {
        addresses: [{ address: "10.0.0.2/24", gateway: "10.0.0.1" }, { address: "10.9.9.9/32" }],
        sandbox: "/n",
        mtu: 1400,
      },
      net1: { addresses: [{ address: "fd00::2/64" }], pciID: "0000:00:1f.6", sandbox: "/n" },
    },
    dns: [{}, { nameservers: ["fd00::53"] }],
    routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }],
    raw: [first, second],
  });
});

test("no results, and a default interface that none reports", () => {
  expect(setupResultOf([], "net0")).toEqual({
    interfaces: { net0: { addresses: [] } },
    dns: [],
    routes: [],
    raw: [],
  });
});

test.each([-1, 1, 2, 7])("an address of interface number %d of 1", (index) => {
  const one = result({ interfaces: [{ name: "eth0" }] });
  one.ips.push({ address: "10.0.0.2/24", interface: index });
  const outcome = () => setupResultOf([one], "eth0");
  expect(outcome).toThrow(`10.0.0.2/24 belongs to interface number ${index} of 1`);
  try {
    outcome();
  } catch (error) {
    expect(isNetworkingError(error, "invalid-result")).toBe(true);
  }
});
