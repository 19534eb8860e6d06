import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { close, lockExclusive, O, open } from "@tscni/sys";
import type { NodeCall } from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Lab, makeLab } from "./testing.ts";

let lab: Lab;
beforeEach(() => {
  lab = makeLab();
});
afterEach(() => lab.close());

const here = (more: NodeCall = {}): NodeCall => ({ netns: lab.container, ifName: "net1", ...more });
const ok = (verb: string, more: object = {}, call?: NodeCall) =>
  lab.node.ok(verb, lab.conf(more), here(call));
const error = (verb: string, more: object = {}, call?: NodeCall) =>
  lab.node.error(verb, lab.conf(more), here(call));

const state = () => ({
  rules: lab.container.run("sh", "-c", "ip rule; ip -6 rule"),
  routes: lab.container
    .run("sh", "-c", "ip route show table all; ip -6 route show table all")
    .split("\n")
    .sort(),
});

const table100 = ["10.2.0.0/24 net1 10.2.0.2", "default 10.2.0.1 net1"];
const table101 = ["default fd02::1 net1", "fd02::/64 net1"];
const mainBefore = [
  "10.1.0.0/24 eth0 10.1.0.2",
  "10.2.0.0/24 net1 10.2.0.2",
  "default 10.1.0.1 eth0",
  "default fd01::1 eth0",
  "fd01::/64 eth0",
  "fd02::/64 net1",
];

describe.each(specVersions)("cniVersion %s", (cniVersion) => {
  test("ADD moves the routes, CHECK is content, DEL takes the rules away, and hands the result on", async () => {
    lab.close();
    lab = makeLab(cniVersion);
    expect(lab.routes("main")).toEqual(mainBefore);
    const result = await ok("ADD");
    expect(result.ips ?? [result.ip4, result.ip6]).toHaveLength(result.ips ? 3 : 2);
    expect(lab.rules()).toEqual(["10.2.0.2 100", "fd02::2 101"]);
    expect(lab.routes(100)).toEqual(table100);
    expect(lab.routes(101)).toEqual(table101);
    expect(lab.routes("main")).toEqual(mainBefore.filter((route) => !route.includes("net1")));
    if (atLeast(cniVersion, "0.4.0")) await ok("CHECK");
    await ok("DEL");
    expect([lab.rules(), lab.routes(100), lab.routes(101)]).toEqual([[], [], []]);
    await ok("DEL");
  });
});

describe("traffic", () => {
  const addresses = ["10.1.0.2", "10.2.0.2", "fd01::2", "fd02::2"];
  const reached = () => addresses.filter((address) => lab.reaches(address));

  test("answers leave by the interface that was asked", async () => {
    expect(reached(), "before").toEqual(["10.1.0.2", "fd01::2"]);
    await ok("ADD");
    expect(reached(), "with rules").toEqual(addresses);
    await ok("DEL");
    expect(reached(), "after").not.toContain("10.2.0.2");
  });

  test("neighbours of either interface are still reached, also by link-local addresses", async () => {
    await ok("ADD");
    for (const [address, from] of [
      ["10.1.0.1", "10.1.0.2"],
      ["10.2.0.1", "10.2.0.2"],
      ["fd01::1", "fd01::2"],
      ["fd02::1", "fd02::2"],
    ] as const)
      lab.container.run("ping", "-c1", "-W1", "-I", from, address);
    lab.container.run("ping", "-c1", "-W1", "ff02::1%net1");
  });

  test("with source hints the subnets stay reachable without saying from where", async () => {
    await ok("ADD", { addSourceHints: true });
    expect(reached()).toEqual(addresses);
    lab.container.run("ping", "-c1", "-W1", "10.2.0.1");
    lab.container.run("ping", "-c1", "-W1", "fd02::1");
    expect(lab.routes("main")).toEqual(
      mainBefore.map((route) => (route === "fd02::/64 net1" ? "fd02::/64 net1 fd02::2" : route)),
    );
    await ok("CHECK", { addSourceHints: true });
  });
});

test("bridge's CHECK still finds its routes", async () => {
  const bridge = lab.node.bridgeConf({ isDefaultGateway: true });
  const call = { netns: lab.container, ifName: "net2" };
  const prevResult = await lab.node.ok("ADD", bridge, call);
  await lab.node.ok("ADD", lab.conf({ prevResult }), call);
  await lab.node.ok("CHECK", { ...bridge, prevResult }, call);
  await lab.node.ok("CHECK", lab.conf({ prevResult }), call);
  lab.container.run("ping", "-c1", "-W1", "-I", "10.88.0.2", "10.88.0.1");
});

test("a table that is given gets rules only", async () => {
  lab.container.run("ip", "route", "add", "default", "via", "10.2.0.1", "table", "77");
  await ok("ADD", { table: 77 });
  expect(lab.rules()).toEqual(["10.2.0.2 77", "fd02::2 77"]);
  expect(lab.routes(77)).toEqual(["default 10.2.0.1 net1"]);
  expect(lab.routes("main")).toEqual(mainBefore);
  expect(lab.reaches("10.2.0.2")).toBe(true);
  await ok("CHECK", { table: 77 });
  expect((await error("CHECK", { table: 78 })).msg).toBe("no rule sends packets from 10.2.0.2 to table 78");
  lab.container.run("ip", "rule", "add", "from", "10.2.0.2", "table", "200");
  await ok("DEL", { table: 77 });
  expect(lab.rules(), "another's").toEqual(["10.2.0.2 200"]);
  expect(lab.routes(77), "somebody else's").toEqual(["default 10.2.0.1 net1"]);
});

test("gateways of the config are instead of the result's", async () => {
  lab.container.run("ip", "addr", "add", "10.2.0.3/24", "dev", "net1");
  await ok("ADD", { gateways: ["10.2.0.254"] });
  expect(lab.routes(100)).toContain("default 10.2.0.254 net1");
  expect(lab.routes(101)).toContain("default fd02::1 net1");
  await ok("CHECK", { gateways: ["10.2.0.254"] });
  expect((await error("CHECK")).msg).toBe("table 100 of 10.2.0.2 has no default route via 10.2.0.1");
  expect(await error("ADD", { gateways: ["10.2.0.1", "10.2.0.3"] })).toMatchObject({
    code: 7,
    msg: expect.stringContaining("has more than one gateway of a family"),
  });
});

test("tables that have a rule or a route are passed over, of either family", async () => {
  lab.container.run("ip", "route", "add", "10.77.0.0/16", "via", "10.1.0.1", "table", "100");
  lab.container.run("ip", "-6", "rule", "add", "from", "fd77::/64", "table", "101");
  lab.container.run("ip", "-6", "route", "add", "fd77::/64", "via", "fd01::1", "table", "103");
  await ok("ADD");
  expect(lab.rules()).toContain("10.2.0.2 102");
  expect(lab.rules()).toContain("fd02::2 104");
  await ok("DEL");
  expect(lab.rules(), "of a subnet, and so not ours").toEqual(["fd77:: 101"]);
});

test("two addresses of one subnet get a table each; other routes of the interface move, too", async () => {
  lab.container.run("ip", "addr", "add", "10.2.0.3/24", "dev", "net1");
  lab.container.run("ip", "route", "add", "10.50.0.0/16", "via", "10.2.0.1", "metric", "7", "mtu", "1300");
  const ips = [
    { address: "10.2.0.2/24", gateway: "10.2.0.1" },
    { address: "10.2.0.3/24", gateway: "10.2.0.1" },
  ];
  await ok("ADD", { prevResult: { cniVersion: "1.1.0", ips } });
  expect(lab.rules()).toEqual(["10.2.0.3 101", "10.2.0.2 100"]);
  for (const table of [100, 101]) {
    expect(lab.routes(table)).toContain("10.50.0.0/16 10.2.0.1 net1");
    expect(lab.container.run("ip", "route", "show", "10.50.0.0/16", "table", String(table))).toContain(
      "via 10.2.0.1 dev net1 metric 7 mtu 1300",
    );
  }
  expect(lab.routes("main").filter((route) => route.includes("net1"))).toEqual(["fd02::/64 net1"].slice(1));
});

describe("ADD refuses", () => {
  test.each([
    [{ prevResult: undefined }, 7, "Required prevResult missing"],
    [{ prevResult: { cniVersion: "1.1.0" } }, 999, "No IP addresses supplied on interface: net1"],
    [
      {
        prevResult: {
          cniVersion: "1.1.0",
          interfaces: [{ name: "eth0" }],
          ips: [{ address: "10.1.0.2/24", interface: 0 }],
        },
      },
      999,
      "No IP addresses supplied on interface: net1",
    ],
    [{ table: "100" }, 6, 'table: "100" is not a number'],
    [{ gateways: "10.2.0.1" }, 6, 'gateways: "10.2.0.1" is not a list'],
    [{ addSourceHints: 1 }, 6, "addSourceHints: 1 is not true or false"],
    [{ table: 0 }, 7, "table: 0 is not between 1 and 4294967295"],
    [{ gateways: ["x"] }, 7, 'gateways[0]: "x" is not an IP address'],
  ])("%j", async (more, code, msg) => {
    const before = state();
    expect(await error("ADD", more)).toMatchObject({ code, msg });
    expect(state()).toEqual(before);
  });

  test("an interface that is not there", async () => {
    const before = state();
    lab.container.run("ip", "link", "set", "net1", "down");
    lab.container.run("ip", "link", "set", "net1", "name", "net2");
    expect((await error("ADD")).msg).toBe('the container has no interface "net1"');
    expect(state().rules).toBe(before.rules);
  });
});

describe("an ADD that fails puts everything back", () => {
  test("after a rule: the gateway is out of reach", async () => {
    const before = state();
    const { msg } = await error("ADD", { gateways: ["172.31.0.1"] });
    expect(msg).toMatch(/^RTM_NEWROUTE 0\.0\.0\.0\/0 via 172\.31\.0\.1 table 100: ENETUNREACH/);
    expect(state()).toEqual(before);
  });

  test("after the first address's rule and routes: the second's gateway is out of reach", async () => {
    const before = state();
    const { msg } = await error("ADD", { gateways: ["fd55::1"] });
    expect(msg).toMatch(/^RTM_NEWROUTE ::\/0 via fd55::1 table 101: EHOSTUNREACH/);
    expect(state()).toEqual(before);
  });

  test.each([{}, { addSourceHints: true }, { table: 5 }])(
    "after everything: nobody reads the result (%j)",
    async (more) => {
      lab.container.run(
        "ip",
        "route",
        "add",
        "10.50.0.0/16",
        "via",
        "10.2.0.1",
        "metric",
        "7",
        "mtu",
        "1300",
      );
      const before = state();
      const { exitCode } = Bun.spawnSync(["sh", "-c", '"$@" >/dev/full', "sh", ...lab.node.command("sbr")], {
        env: {
          CNI_COMMAND: "ADD",
          CNI_CONTAINERID: "c1",
          CNI_NETNS: lab.container.path,
          CNI_IFNAME: "net1",
          CNI_PATH: "/",
          PATH: process.env.PATH,
        },
        stdin: new TextEncoder().encode(JSON.stringify(lab.conf(more))),
      });
      expect(exitCode).not.toBe(0);
      expect(state()).toEqual(before);
    },
  );
});

describe("DEL", () => {
  test("without a namespace succeeds and makes no file", async () => {
    for (const netns of ["", "/run/netns/tscni-no-such", "/etc/hostname"]) {
      await ok("DEL", {}, { netns });
      await ok("DEL", { prevResult: undefined }, { netns });
    }
    expect(existsSync("/run/netns/tscni-no-such")).toBe(false);
  });

  test.each([
    ["the previous result", {}, true],
    ["the record of the ADD", { prevResult: undefined }, false],
  ])("finds the rules of an interface that is gone by %s", async (_, more, forget) => {
    await ok("ADD");
    if (forget) rmSync("/run/tscni/sbr/sbr-tests", { recursive: true });
    lab.container.run("ip", "rule", "add", "from", "10.1.0.2", "table", "150"); // somebody has this address
    lab.container.run("ip", "link", "del", "net1");
    expect(lab.rules()).toHaveLength(3);
    await ok("DEL", more);
    expect(lab.rules()).toEqual(["10.1.0.2 150"]);
  });

  test("finds the rules of an earlier ADD that no DEL came after", async () => {
    await ok("ADD");
    lab.container.run("ip", "addr", "flush", "dev", "net1");
    lab.container.run("ip", "addr", "add", "10.2.0.7/24", "dev", "net1");
    const ips = [{ address: "10.2.0.7/24", gateway: "10.2.0.1" }];
    await ok("ADD", { prevResult: { cniVersion: "1.1.0", ips } });
    await error("ADD", { prevResult: { cniVersion: "1.1.0", ips }, gateways: ["172.31.0.1"] });
    expect(lab.rules()).toHaveLength(3);
    lab.container.run("ip", "link", "del", "net1");
    await ok("DEL", { prevResult: undefined });
    expect(lab.rules()).toEqual([]);
  });

  test("does not mind what the config says", async () => {
    await ok("ADD");
    await ok("DEL", { table: "x", gateways: 5, addSourceHints: "no" });
    expect(lab.rules()).toEqual([]);
  });

  test("leaves the other interface's rules", async () => {
    const onEth0 = {
      prevResult: { cniVersion: "1.1.0", ips: [{ address: "10.1.0.2/24", gateway: "10.1.0.1" }] },
    };
    await ok("ADD", onEth0, { ifName: "eth0" });
    await ok("ADD");
    expect(lab.rules()).toHaveLength(3);
    await ok("DEL", { prevResult: undefined });
    expect(lab.rules()).toEqual(["10.1.0.2 100"]);
    expect(lab.routes(100)).toEqual(["10.1.0.0/24 eth0 10.1.0.2", "default 10.1.0.1 eth0"]);
    await ok("DEL", onEth0, { ifName: "eth0" });
    expect([lab.rules(), lab.routes(100)]).toEqual([[], []]);
  });
});

describe("CHECK finds", () => {
  test.each([
    ["a rule gone", "ip rule del from 10.2.0.2", "no rule sends packets from 10.2.0.2 to a table"],
    ["an IPv6 rule gone", "ip -6 rule del from fd02::2", "no rule sends packets from fd02::2 to a table"],
    [
      "the default route gone",
      "ip route del default table 100",
      "table 100 of 10.2.0.2 has no default route via 10.2.0.1",
    ],
    [
      "another gateway",
      "ip -6 route replace default via fd02::7 table 101",
      "table 101 of fd02::2 has no default route via fd02::1",
    ],
    ["the interface gone", "ip link del net1", 'the container has no interface "net1"'],
  ])("%s", async (_, command, msg) => {
    await ok("ADD");
    await ok("CHECK");
    lab.container.run("sh", "-c", command);
    expect((await error("CHECK")).msg).toBe(msg);
  });
});

test("ADD waits for others who have locked the namespace, as the reference does", async () => {
  const fd = open(lab.container.path, O.RDONLY);
  lockExclusive(fd);
  const adding = ok("ADD");
  await Bun.sleep(300);
  expect(lab.rules(), "while it is locked").toEqual([]);
  close(fd);
  await adding;
  expect(lab.rules()).toHaveLength(2);
});

test("two at once in one container take different tables", async () => {
  const onEth0 = {
    prevResult: { cniVersion: "1.1.0", ips: [{ address: "10.1.0.2/24", gateway: "10.1.0.1" }] },
  };
  await Promise.all([ok("ADD", onEth0, { ifName: "eth0" }), ok("ADD")]);
  expect(new Set(lab.rules().map((rule) => rule.split(" ")[1])).size).toBe(3);
});

test("STATUS is good and changes nothing", async () => {
  const before = [state(), lab.node.state()];
  await ok("STATUS", {}, { netns: undefined });
  expect([state(), lab.node.state()]).toEqual(before);
});

describe("GC", () => {
  const gc = async (valid: object[] | undefined) => {
    const conf = lab.conf(valid ? { "cni.dev/valid-attachments": valid } : {});
    const { status, stdout, stderr } = await lab.node.call("GC", conf);
    expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
    return stderr;
  };
  const record = "/run/tscni/sbr/sbr-tests/c1:net1";
  beforeEach(async () => {
    await gc([]);
    await ok("ADD");
    expect(existsSync(record)).toBe(true);
  });

  test("takes rules and tables out of containers that are still there, and says so", async () => {
    const before = state();
    expect(await gc(undefined)).toBe("");
    expect(await gc([{ containerID: "c1", ifname: "net1" }])).toBe("");
    expect(state()).toEqual(before);
    expect(await gc([{ containerID: "c1", ifname: "eth0" }])).toBe(
      `sbr: gc: removed 2 rules of c1 net1 from ${lab.container.path}\n`,
    );
    expect([lab.rules(), lab.routes(100), lab.routes(101), existsSync(record)]).toEqual([[], [], [], false]);
  });

  test("leaves the tables that somebody else has filled", async () => {
    await ok("DEL");
    lab.container.run("ip", "route", "add", "10.66.0.0/16", "via", "10.1.0.1", "table", "177");
    await ok("ADD", { table: 177 });
    expect(await gc([])).toContain("removed 2 rules");
    expect([lab.rules(), lab.routes(177)]).toEqual([[], ["10.66.0.0/16 10.1.0.1 eth0"]]);
  });

  test("leaves a namespace alone that has come to be at the same path", async () => {
    const file = JSON.parse(readFileSync(record, "utf8"));
    file.data.inode += 1;
    writeFileSync(record, JSON.stringify(file));
    expect(await gc([])).toBe("");
    expect([lab.rules().length, existsSync(record)]).toEqual([2, false]);
  });

  test("forgets containers that are gone, and what it can't read", async () => {
    lab.container.close();
    expect(await gc([])).toBe("");
    expect(existsSync(record)).toBe(false);
    mkdirSync("/run/tscni/sbr/sbr-tests", { recursive: true });
    writeFileSync(record, "{");
    expect(await gc([])).toContain("ignoring");
    expect(existsSync(record)).toBe(false);
  });
});

test("no record stays after a DEL, an ADD that failed, or without a namespace", async () => {
  const records = () =>
    existsSync("/run/tscni/sbr/sbr-tests") ? readdirSync("/run/tscni/sbr/sbr-tests") : [];
  await ok("ADD");
  expect(records()).toEqual(["c1:net1"]);
  await ok("DEL", { prevResult: undefined }, { netns: "" });
  expect(records()).toEqual([]);
  await error("ADD", { gateways: ["172.31.0.1"] });
  expect(records()).toEqual([]);
});
