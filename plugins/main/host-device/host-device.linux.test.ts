import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import {
  type Conf,
  ip,
  makeLan,
  makeNode,
  namesIn,
  pings,
  type TestNamespace,
  type TestNode,
} from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

/** A network of this file's own: all tests have one /run. */
const network = "hostdevnet";
const folder = `/run/tscni/host-device/${network}`;
let node: TestNode;
let c: TestNamespace;
/** What lies behind the device, which is `eth0` on the host. */
let lan: TestNamespace;
let mac: string;
beforeEach(() => {
  node = makeNode();
  c = node.container();
  lan = makeLan(node, "10.88.0.1/24", "fd88::1/64");
  mac = linkOf(node.host, "eth0").address;
});
afterEach(() => {
  node.close();
  rmSync(folder, { recursive: true, force: true });
});

const conf = (more: object = {}, subnets?: readonly string[]): Conf =>
  node.conf("host-device", { name: network, device: "eth0", ...more }, subnets);
const linkOf = (ns: TestNamespace, name: string) => ip(ns, "link", "show", "dev", name)[0];
const records = () => (existsSync(folder) ? readdirSync(folder) : []);
const call = { ifName: "net1" };
/** The device is on the host, as it was but for being down, and nobody remembers that it was away. */
function expectHome(up = false): void {
  const { address, ifalias, flags } = linkOf(node.host, "eth0");
  expect({ address, ifalias, up: flags.includes("UP") }).toEqual({ address: mac, ifalias: undefined, up });
  expect([records(), node.leases(network)]).toEqual([[], []]);
}

describe.each(specVersions)("cniVersion %s", (cniVersion) => {
  test("ADD, CHECK where there is one, DEL: the device is home", async () => {
    const added = await node.ok("ADD", conf({ cniVersion }), { ...call, netns: c });
    expect(linkOf(c, "net1")).toMatchObject({ address: mac, ifalias: "eth0", operstate: "UP" });
    expect(namesIn(node.host)).toEqual(["lo"]);
    if (atLeast(cniVersion, "0.3.0"))
      expect(added.interfaces).toEqual([
        { name: "net1", mac, sandbox: c.path, ...(atLeast(cniVersion, "1.0.0") ? { mtu: 1500 } : {}) },
      ]);
    const later = conf({ cniVersion, prevResult: added });
    if (atLeast(cniVersion, "0.4.0")) await node.ok("CHECK", later, { ...call, netns: c });
    for (let i = 0; i < 2; i++) await node.ok("DEL", later, { ...call, netns: c });
    expectHome();
    expect(namesIn(c)).toEqual(["lo"]);
  });
});

test("packets of both families go through it at once, and no more when it is home", async () => {
  await node.ok("ADD", conf(), { ...call, netns: c });
  expect([
    pings(c, "fd88::1"),
    pings(c, "10.88.0.1"),
    pings(lan, "10.88.0.2"),
    pings(lan, "fd88::2"),
  ]).toEqual([true, true, true, true]);
  await node.ok("DEL", conf(), { ...call, netns: c });
  expect(pings(lan, "10.88.0.2")).toBe(false);
});

describe("the device is found by", () => {
  test.each<[string, () => object]>([
    ["name", () => ({ device: "eth0" })],
    ["MAC address", () => ({ device: "", hwaddr: mac.toUpperCase().replaceAll(":", "-") })],
    ["name before all others", () => ({ hwaddr: "02:00:00:00:00:01", kernelpath: "/nowhere" })],
  ])("%s", async (_, named) => {
    await node.ok("ADD", conf(named(), []), { ...call, netns: c });
    expect(linkOf(c, "net1").address).toBe(mac);
  });

  test.each<[object, number, string]>([
    [{ device: "nope" }, 7, 'failed to find host device: no link "nope"'],
    [{ device: "" }, 7, 'specify either "device", "hwaddr", "kernelpath" or "pciBusID"'],
    [
      { device: "", hwaddr: "02:00:00:00:00:01" },
      7,
      "failed to find host device: no link has the MAC address 02:00:00:00:00:01",
    ],
    [{ device: "", hwaddr: "nonsense" }, 7, 'hwaddr: "nonsense" is not a MAC address'],
    [
      { device: "", kernelpath: "/sys/class/net" },
      7,
      'kernel device path "/sys/class/net" must be absolute and begin with /sys/devices/',
    ],
    [
      { device: "", kernelpath: "/sys/devices/../class" },
      7,
      'kernel device path "/sys/devices/../class" must be absolute and begin with /sys/devices/',
    ],
    [
      { device: "", kernelpath: "/sys/devices/system" },
      7,
      "failed to find host device: /sys/devices/system has no network interface on this host",
    ],
    [{ device: "", pciBusID: "ffff:00:00.0" }, 7, 'error with host device: no PCI device "ffff:00:00.0"'],
    [{ device: "", pciBusID: "../../x" }, 7, 'pciBusID: "../../x" is not a device\'s id'],
    [{ runtimeConfig: { deviceID: "nope.1" } }, 7, "runtime config DeviceID nope.1 not found or unsupported"],
  ])("%j: refused", async (more, code, msg) => {
    const before = node.state().links;
    const error = await node.error("ADD", conf(more), { ...call, netns: c });
    expect({ code: error.code, msg: error.msg }).toEqual({ code, msg });
    expect([node.state().links, records()]).toEqual([before, []]);
  });
});

describe("an ADD that fails brings it back, up as it was", () => {
  test.each<[string, () => Conf]>([
    ["the IPAM plugin is missing", () => conf({ ipam: { type: "nonesuch" } })],
    [
      "the kernel refuses a route",
      () => conf({ ipam: { ...conf().ipam, routes: [{ dst: "10.77.0.0/16", gw: "172.31.0.1" }] } }),
    ],
  ])("%s", async (_, bad) => {
    const error = await node.error("ADD", bad(), { ...call, netns: c });
    expect(error.details ?? "").not.toContain("could not be taken back");
    expectHome(true);
    await node.ok("ADD", conf(), { ...call, netns: c });
  });

  test("the name is taken in the container", async () => {
    c.run("ip", "link", "add", "net1", "type", "veth", "peer", "name", "other");
    const { msg } = await node.error("ADD", conf(), { ...call, netns: c });
    expect(msg).toBe('interface "net1" already exists in the container');
    expectHome(true);
  });

  test("a device that can't be moved", async () => {
    const { msg } = await node.error("ADD", conf({ device: "lo" }, []), { ...call, netns: c });
    expect(msg).toMatch(/EINVAL/);
    expectHome(true);
    expect(linkOf(node.host, "lo").flags).toContain("UP");
  });
});

describe("DEL brings it home", () => {
  test("when the container has renamed it", async () => {
    await node.ok("ADD", conf(), { ...call, netns: c });
    c.run("ip", "link", "set", "net1", "down");
    c.run("ip", "link", "set", "net1", "name", "renamed");
    await node.ok("DEL", conf(), { ...call, netns: c });
    expectHome();
  });

  test("when the container has an interface of its name on the host", async () => {
    await node.ok("ADD", conf(), { ...call, netns: c });
    c.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "other");
    await node.ok("DEL", conf(), { ...call, netns: c });
    expectHome();
    expect(namesIn(c)).toEqual(["eth0", "lo", "other"]);
  });

  test("as soon as nothing else has its name there", async () => {
    await node.ok("ADD", conf(), { ...call, netns: c });
    node.host.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "other");
    const { msg } = await node.error("DEL", conf(), { ...call, netns: c });
    expect(msg).toContain('failed to rename the device back to "eth0"');
    expect([linkOf(c, "net1").ifalias, node.leases(network)]).toEqual(["eth0", []]);
    node.host.run("ip", "link", "del", "eth0");
    await node.ok("DEL", conf(), { ...call, netns: c });
    expectHome();
  });

  test("by its alias alone when the record is lost", async () => {
    await node.ok("ADD", conf(), { ...call, netns: c });
    rmSync(folder, { recursive: true });
    await node.ok("DEL", conf(), { ...call, netns: c });
    expectHome();
  });

  test("by the record when the alias is lost and the record damaged, not: but it succeeds", async () => {
    await node.ok("ADD", conf(), { ...call, netns: c });
    writeFileSync(`${folder}/c1:net1`, "damaged");
    c.run("ip", "link", "set", "net1", "alias", "");
    const { status, stderr } = await node.call("DEL", conf(), { ...call, netns: c });
    expect([status, records()]).toEqual([0, []]);
    expect(stderr).toContain("ignoring");
  });

  test("from the host, where the kernel left it under another name", async () => {
    await node.ok("ADD", conf(), { ...call, netns: c });
    // What the kernel does with a physical device when its namespace goes.
    c.run("ip", "link", "set", "net1", "netns", node.host.path);
    c.close();
    await node.ok("DEL", conf(), { ...call, netns: c });
    expectHome();
  });

  test.each([
    ["of a virtual device, which died with its namespace", undefined],
    ["without netns", ""],
    [
      "with a config that names no device, or a wrong one",
      { device: "", pciBusID: "ffff:00:00.0", hwaddr: 5 },
    ],
  ])("%s, it succeeds", async (_, how) => {
    await node.ok("ADD", conf(), { ...call, netns: c });
    if (typeof how !== "object") {
      if (how === undefined) c.close();
      await node.ok("DEL", conf(), { ...call, netns: how ?? c });
      expect([records(), node.leases(network)]).toEqual([[], []]);
    } else {
      await node.ok("DEL", conf(how), { ...call, netns: c });
      expectHome();
    }
  });

  test("an interface that is not the device is left alone", async () => {
    c.run("ip", "link", "add", "net1", "type", "veth", "peer", "name", "other");
    await node.ok("DEL", conf(), { ...call, netns: c });
    expect(namesIn(c)).toEqual(["lo", "net1", "other"]);
  });
});

describe("GC", () => {
  const gc = (valid: object[]) => node.ok("GC", conf({ "cni.dev/valid-attachments": valid }));

  test("brings home what is in a namespace that is still there, and nothing of the valid ones", async () => {
    await node.ok("ADD", conf(), { ...call, netns: c });
    await node.ok("GC", conf());
    await gc([{ containerID: "c1", ifname: "net1" }]);
    expect(linkOf(c, "net1").ifalias).toBe("eth0");
    await gc([]);
    expectHome();
  });

  test("brings home what the kernel has left on the host", async () => {
    await node.ok("ADD", conf(), { ...call, netns: c });
    c.run("ip", "link", "set", "net1", "netns", node.host.path);
    c.close();
    await gc([]);
    expectHome();
  });

  test("never takes it from the container that has it now", async () => {
    await node.ok("ADD", conf(), { ...call, netns: c });
    const stale = readdirSync(folder)[0]!;
    await node.ok("DEL", conf(), { ...call, netns: c });
    await node.ok("ADD", conf(), { ...call, id: "c2", netns: c });
    // The first container's record came back, as after a DEL that was killed at its end.
    const second = await Bun.file(`${folder}/c2:net1`).text();
    writeFileSync(`${folder}/${stale}`, second.replaceAll('"c2"', '"c1"'));
    await gc([{ containerID: "c2", ifname: "net1" }]);
    expect([linkOf(c, "net1").ifalias, records()]).toEqual(["eth0", ["c2:net1"]]);
  });
});

test.each([
  ["ip addr del 10.88.0.2/24 dev net1", "lacks the address 10.88.0.2/24"],
  ["ip link set net1 address 02:00:00:00:00:09", "02:00:00:00:00:09"],
  ["ip link del net1", "net1 is missing"],
])("CHECK after %s", async (command, message) => {
  const prevResult = await node.ok("ADD", conf(), { ...call, netns: c });
  c.run(...command.split(" "));
  expect((await node.error("CHECK", conf({ prevResult }), { ...call, netns: c })).msg).toContain(message);
});

test("STATUS: 50 without the device, unless it is in a container of the network", async () => {
  await node.ok("STATUS", conf());
  expect(await node.error("STATUS", conf({ device: "nope" }))).toMatchObject({ code: 50 });
  expect(await node.error("STATUS", conf({ device: "", pciBusID: "ffff:00:00.0" }))).toMatchObject({
    code: 50,
  });
  expect(await node.error("STATUS", conf({ device: "" }))).toMatchObject({ code: 7 });
  await node.ok("STATUS", conf({ device: "", capabilities: { deviceID: true } }));
  await node.ok("ADD", conf(), { ...call, netns: c });
  await node.ok("STATUS", conf());
});
