import { expect, test } from "vitest";
import { parseDaemonFlags } from "./daemon/flags.ts";
import type { LeaseView } from "./protocol.ts";
import { tableOf } from "./table.ts";

test("flags as Go reads them: one dash or two, with = or a word of its own", () => {
  expect(parseDaemonFlags([])).toEqual({
    pidfile: "",
    hostprefix: "",
    socketpath: "/run/cni/dhcp.sock",
    broadcast: false,
    leasedir: "/var/lib/cni/dhcp",
    timeout: 10_000,
    resendmax: 62_000,
    resendtimeout: 208_000,
  });
  const args = [
    "-pidfile",
    "/p",
    "--hostprefix=/host",
    "-socketpath=",
    "-broadcast",
    "-timeout",
    "1m30s",
    "-resendmax=1.5s",
  ];
  expect(parseDaemonFlags([...args, "-resendtimeout", "250ms"])).toMatchObject({
    pidfile: "/p",
    hostprefix: "/host",
    socketpath: "/run/cni/dhcp.sock",
    broadcast: true,
    timeout: 90_000,
    resendmax: 1500,
    resendtimeout: 250,
  });
  expect(parseDaemonFlags(["-broadcast=false"]).broadcast).toBe(false);
});

test.each([
  [["-nosuch"], "flag provided but not defined: -nosuch"],
  [["-toString"], "flag provided but not defined: -toString"],
  [["word"], 'unexpected argument "word"'],
  [["-pidfile", "relative"], "path not absolute"],
  [["-pidfile"], "flag needs an argument: -pidfile"],
  [["-broadcast=maybe"], 'invalid boolean value "maybe"'],
  [["-timeout", "10"], 'invalid value "10" for flag -timeout'],
  [["-timeout", "0s"], 'invalid value "0s"'],
  [["-timeout", "9999h"], 'invalid value "9999h"'],
  [["-timeout", "1s junk"], "invalid value"],
])("%j is refused", (args, message) => {
  expect(() => parseDaemonFlags(args)).toThrow(message);
});

test("the table of leases", () => {
  const lease: LeaseView = {
    network: "lan",
    containerId: "0123456789abcdef0123",
    ifName: "eth0",
    state: "bound",
    netns: "/n",
    address: "10.0.0.5/24",
    server: "10.0.0.1",
    renewsIn: 59,
    expiresIn: 93_784,
  };
  const { address: _, ...without } = lease;
  const forEver: LeaseView = { ...without, address: "10.0.0.6/24", containerId: "b" };
  delete forEver.expiresIn;
  const acquiring: LeaseView = {
    network: "lan",
    containerId: "c",
    ifName: "eth0",
    state: "acquiring",
    netns: "/n",
    problem: "why",
  };
  expect(tableOf([lease, forEver, acquiring]).split("\n")).toEqual([
    "NETWORK  CONTAINER         INTERFACE  ADDRESS      STATE      SERVER    RENEWS  EXPIRES",
    "lan      0123456789abc...  eth0       10.0.0.5/24  bound      10.0.0.1  59s     1d2h",
    "lan      b                 eth0       10.0.0.6/24  bound      10.0.0.1  59s     never",
    "lan      c                 eth0       -            acquiring  -         -       -",
    "  why",
  ]);
  expect(tableOf([])).toBe("no leases");
});
