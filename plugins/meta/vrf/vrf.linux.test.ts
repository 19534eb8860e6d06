import {
  addAddress,
  type Conf,
  envOf,
  ip,
  makeNode,
  namesIn,
  needs,
  pings,
  runPlugin,
  type TestNamespace,
  type TestNode,
} from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
let c: TestNamespace;
beforeEach((test) => {
  needs(test, "vrf");
  node = makeNode();
  c = node.container();
});
afterEach(() => node?.close());

/** What the plugins before make: an interface, up and with addresses, to a network of its own; returns that. */
function connect(ifName = "eth0", lanAddresses = ["10.88.0.50/24", "fd88::50/64"]): TestNamespace {
  const lan = node.container();
  c.run("ip", "link", "add", ifName, "type", "veth", "peer", "uplink", "netns", lan.path);
  addAddress(c, ifName, "10.88.0.2/24");
  addAddress(c, ifName, "fd88::2/64");
  c.run("ip", "link", "set", ifName, "up");
  lan.run("ip", "link", "set", "uplink", "up");
  for (const address of lanAddresses) addAddress(lan, "uplink", address);
  return lan;
}

const prevResult = (ifName = "eth0") => ({
  cniVersion: "1.1.0",
  interfaces: [{ name: ifName, sandbox: c.path }],
  ips: [{ address: "10.88.0.2/24", interface: 0 }],
});
const conf = (more: object = {}): Conf =>
  node.conf("vrf", { vrfname: "blue", prevResult: prevResult(), ...more }, []);
const linkOf = (name = "eth0") => ip(c, "link", "show", "dev", name)[0];
const tableOf = (vrf: string) => linkOf(vrf).linkinfo.info_data.table;
/** Routes and global addresses of the container's interfaces, as text, without what comes by itself. */
const state = () =>
  ["-4 route show table all", "-6 route show table all", "addr show scope global"].map((what) =>
    c
      .run("ip", "-o", ...what.split(" "))
      .split("\n")
      .filter((line) => !/fe80|ff00|multicast/.test(line))
      .map((line) => line.replaceAll(/valid_lft.*|expires \d+sec|pref \w+|^\d+: |\s+$/g, ""))
      .toSorted(),
  );

describe.each(["0.3.1", "0.4.0", "1.0.0", "1.1.0"])("cniVersion %s", (cniVersion) => {
  test("ADD hands the result on, CHECK where there is one, DEL; nothing stays", async () => {
    connect();
    const before = state();
    const given = { ...prevResult(), cniVersion };
    const own = conf({ cniVersion, prevResult: given });
    const added = await node.ok("ADD", own, { netns: c });
    expect(added).toMatchObject({ cniVersion, interfaces: given.interfaces, ips: given.ips });
    expect(linkOf().master).toBe("blue");
    expect(linkOf("blue").flags).toContain("UP");
    if (cniVersion !== "0.3.1") await node.ok("CHECK", { ...own, prevResult: added }, { netns: c });
    for (let i = 0; i < 2; i++) await node.ok("DEL", { ...own, prevResult: added }, { netns: c });
    expect(namesIn(c)).toEqual(["eth0", "lo"]);
    expect(state(), "routes and addresses").toEqual(before);
  });
});

test("before 0.3.1 there is no vrf, as there is none of the reference's", async () => {
  expect(await node.error("ADD", conf({ cniVersion: "0.3.0" }), { netns: c })).toMatchObject({ code: 1 });
});

describe("packets", () => {
  test("two VRFs may have the same subnet and address, and each reaches its own network only", async () => {
    const lans = { blue: connect("eth0"), red: connect("eth1", ["10.88.0.50/24", "10.88.0.60/24"]) };
    await node.ok("ADD", conf(), { netns: c });
    const red = conf({ vrfname: "red", prevResult: prevResult("eth1") });
    await node.ok("ADD", red, { netns: c, ifName: "eth1" });
    expect([tableOf("blue"), tableOf("red")]).toEqual([1, 2]);
    expect(pings(c, "10.88.0.50", "-I", "blue")).toBe(true);
    expect(pings(c, "fd88::50", "-I", "blue")).toBe(true);
    expect(pings(c, "10.88.0.60", "-I", "red")).toBe(true);
    expect(pings(c, "10.88.0.60", "-I", "blue"), "the other's network").toBe(false);
    expect(pings(c, "10.88.0.50"), "from without").toBe(false);
    expect(pings(lans.blue, "10.88.0.2")).toBe(true);
    lans.blue.run("ip", "link", "set", "uplink", "down");
    expect(pings(c, "10.88.0.50", "-I", "red"), "the other goes on").toBe(true);
  });

  test("routes go along, with what they need to be reached, and work", async () => {
    const lan = connect();
    lan.run("ip", "addr", "add", "10.77.0.1/32", "dev", "lo");
    for (const route of [
      "-4 route add 172.31.0.1/32 dev eth0 scope link",
      "-4 route add 10.66.0.0/16 via 172.31.0.1",
      "-4 route add 10.77.0.0/16 via 10.88.0.50 metric 7",
      "-6 route add default via fd88::50",
      "-4 route add 10.55.0.0/16 via 10.88.0.50 table 500",
    ])
      c.run("ip", ...route.split(" "));
    const before = state();
    await node.ok("ADD", conf({ table: 1001 }), { netns: c });
    expect(tableOf("blue")).toBe(1001);
    const routes = (table: number) => c.run("ip", "route", "show", "table", String(table));
    for (const dst of ["172.31.0.1", "10.66.0.0/16", "10.77.0.0/16"]) expect(routes(1001)).toContain(dst);
    expect(routes(254)).toBe("");
    expect(routes(500)).toContain("10.55.0.0/16");
    expect(pings(c, "10.77.0.1", "-I", "blue")).toBe(true);
    await node.ok("DEL", conf({ table: 1001 }), { netns: c });
    expect(state()).toEqual(before);
  });

  test("IPv6 addresses and routes go along where the kernel would drop them", async () => {
    connect();
    c.run("sysctl", "-w", "net.ipv6.conf.eth0.keep_addr_on_down=0");
    c.run("ip", "-6", "route", "add", "default", "via", "fd88::50");
    await node.ok("ADD", conf(), { netns: c });
    expect(pings(c, "fd88::50", "-I", "blue")).toBe(true);
    expect(ip(c, "-6", "route", "show", "default", "vrf", "blue")).toMatchObject([{ gateway: "fd88::50" }]);
  });

  test("a route that another interface shares stays with it", async () => {
    connect();
    c.run("ip", "link", "add", "eth1", "up", "type", "veth", "peer", "name", "p1");
    addAddress(c, "eth1", "10.44.0.1/24");
    const shared = ["10.33.0.0/16", "nexthop", "via", "10.88.0.50", "nexthop", "via", "10.44.0.9"];
    c.run("ip", "route", "add", ...shared);
    await node.ok("ADD", conf(), { netns: c });
    expect(ip(c, "route", "show", "10.33.0.0/16")).toHaveLength(1);
    expect(ip(c, "route", "show", "10.33.0.0/16", "vrf", "blue")).toEqual([]);
  });
});

test("an interface that joins a VRF that is there: the last to leave takes it away", async () => {
  connect("eth0");
  connect("eth1");
  const second = { netns: c, ifName: "eth1" };
  const joining = conf({ prevResult: prevResult("eth1") });
  await node.ok("ADD", conf({ table: 77 }), { netns: c });
  const { msg } = await node.error("ADD", { ...joining, table: 78 }, second);
  expect(msg).toBe("VRF blue already exist with different routing table 77");
  expect(linkOf("eth1").master, "untouched").toBeUndefined();
  await node.ok("ADD", joining, second);
  await node.ok("DEL", conf(), { netns: c });
  expect([linkOf("eth1").master, namesIn(c).includes("blue")]).toEqual(["blue", true]);
  await node.ok("DEL", joining, second);
  expect(namesIn(c)).not.toContain("blue");
});

test("without table: the lowest that no VRF has, also when the first is gone", async () => {
  connect("eth0");
  c.run("ip", "link", "add", "other", "type", "vrf", "table", "1");
  await node.ok("ADD", conf(), { netns: c });
  expect(tableOf("blue")).toBe(2);
});

describe("an ADD that fails changes nothing", () => {
  test.each<[string, () => void, object, RegExp]>([
    ["no interface", () => c.run("ip", "link", "del", "eth0"), {}, /^could not get link by name eth0$/],
    [
      "the interface has a master",
      () => c.run("sh", "-c", "ip link add br0 type bridge; ip link set eth0 master br0"),
      {},
      /^interface eth0 has already a master set: br0$/,
    ],
    [
      "the name is another link's",
      () => c.run("ip", "link", "add", "blue", "type", "bridge"),
      {},
      /^"blue" already exists but is not a VRF$/,
    ],
    ["no prevResult", () => {}, { prevResult: undefined }, /^Required prevResult missing$/],
  ])("%s", async (_, breakIt, more, message) => {
    connect();
    breakIt();
    const before = [namesIn(c), state()];
    const error = await node.error("ADD", conf(more), { netns: c });
    expect(error.msg).toMatch(message);
    expect([namesIn(c), state()]).toEqual(before);
  });

  test("the interface can't be enslaved: the new VRF goes again", async () => {
    connect();
    // A VRF takes no other VRF (vrf_add_slave in drivers/net/vrf.c).
    c.run("ip", "link", "add", "eth9", "type", "vrf", "table", "9");
    const before = namesIn(c);
    const error = await node.error("ADD", conf({ prevResult: prevResult("eth9") }), {
      netns: c,
      ifName: "eth9",
    });
    expect(error.details ?? "").not.toContain("could not be taken back");
    expect(namesIn(c)).toEqual(before);
  });

  test("the result can't be delivered: interface, addresses and routes are as before", async () => {
    connect();
    c.run("ip", "route", "add", "10.77.0.0/16", "via", "10.88.0.50");
    c.run("sysctl", "-w", "net.ipv6.conf.eth0.keep_addr_on_down=0");
    const before = [namesIn(c), state()];
    const outcome = await runPlugin({
      bin: "/bin/sh",
      args: ["-c", '"$@" >/dev/full', "sh", ...node.command("vrf")],
      env: envOf("ADD", { netns: c }),
      stdin: conf(),
    });
    expect(outcome.status).not.toBe(0);
    expect([namesIn(c), state()]).toEqual(before);
  });
});

describe("DEL", () => {
  test.each(["no netns", "netns gone", "interface gone", "VRF gone", "no vrfname"])(
    "with %s",
    async (what) => {
      connect();
      await node.ok("ADD", conf(), { netns: c });
      if (what === "netns gone") c.close();
      if (what === "interface gone") c.run("ip", "link", "del", "eth0");
      if (what === "VRF gone") c.run("ip", "link", "del", "blue");
      const { stdout } = await node.call("DEL", conf(what === "no vrfname" ? { vrfname: undefined } : {}), {
        netns: what === "no netns" ? "" : c,
      });
      expect(stdout).toBe("");
      if (what === "interface gone") expect(namesIn(c), "the empty VRF goes").toEqual(["lo"]);
      if (what === "VRF gone") expect(namesIn(c)).toEqual(["eth0", "lo"]);
    },
  );

  test("leaves alone an interface that is in another VRF by now", async () => {
    connect();
    await node.ok("ADD", conf(), { netns: c });
    c.run("ip", "link", "add", "green", "type", "vrf", "table", "50");
    c.run("ip", "link", "set", "eth0", "master", "green");
    await node.ok("DEL", conf(), { netns: c });
    expect(linkOf().master).toBe("green");
    expect(namesIn(c)).not.toContain("blue");
  });
});

test.each([
  ["ip link set eth0 nomaster", {}, "failed to find eth0 associated to vrf blue"],
  ["ip link set blue down", {}, "VRF blue is down"],
  ["ip link del blue", {}, "VRF blue is missing"],
  ["true", { table: 5 }, "VRF blue has routing table 1, not 5"],
  ["true", { prevResult: undefined }, "Required prevResult missing"],
])("CHECK fails after %s, with %o", async (command, more, message) => {
  connect();
  await node.ok("ADD", conf(), { netns: c });
  c.run(...command.split(" "));
  expect((await node.error("CHECK", conf(more), { netns: c })).msg).toBe(message);
});

test("STATUS and GC", async () => {
  await node.ok("STATUS", conf());
  await node.ok("GC", conf({ "cni.dev/valid-attachments": [] }));
});
