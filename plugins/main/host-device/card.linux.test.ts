import { existsSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import {
  type Conf,
  envOf,
  ip,
  makeNode,
  type NodeCall,
  needs,
  run,
  runPlugin,
  type TestNamespace,
  type TestNode,
} from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

/*
 * A real device, the virtual machine's: unlike a virtual one it outlives the namespace that it is in. The kernel brings
 * it to the machine's first namespace, so the plugin runs there.
 */

const driver = "/sys/bus/pci/drivers/e1000";
const network = "cardnet";
const folder = `/run/tscni/host-device/${network}`;
let node: TestNode;
let c: TestNamespace;
let pciID: string;
let name: string;
beforeEach((test) => {
  needs(test, "a network card to spare");
  node = makeNode();
  c = node.container();
  pciID = readdirSync(driver).find((entry) => entry.startsWith("0000:"))!;
  name = readdirSync(`${driver}/${pciID}/net`)[0]!;
});
afterEach(() => node?.close());

const conf = (more: object = {}): Conf =>
  node.conf("host-device", { name: network, ...more }, ["10.88.0.0/24"]);
async function call(verb: string, config: Conf, more: NodeCall = {}) {
  const env = envOf(verb, { netns: c, ifName: "net1", ...more });
  const { status, stdout, stderr, json } = await runPlugin({ bin: "host-device", env, stdin: config });
  if (status !== 0) throw new Error(`${verb}: ${stdout}${stderr}`);
  return json;
}
const names = () => ip(undefined, "link").map((link) => link.ifname);
const expectHome = () => {
  const [link] = ip(undefined, "link", "show", "dev", name);
  expect([link.ifalias, existsSync(folder), node.leases(network)]).toEqual([undefined, false, []]);
  expect(names()).not.toContain("net1");
};

describe("found by", () => {
  test.each<[string, () => object]>([
    ["name", () => ({ device: name })],
    ["kernel path", () => ({ kernelpath: realpathSync(`${driver}/${pciID}`) })],
    ["PCI address", () => ({ pciBusID: pciID })],
    ["the runtime's deviceID", () => ({ pciBusID: "ffff:00:00.0", runtimeConfig: { deviceID: pciID } })],
  ])("%s, it goes and comes home", async (what, named) => {
    const added = await call("ADD", conf(named()));
    const [moved] = ip(c, "link", "show", "dev", "net1");
    expect(moved).toMatchObject({ ifalias: name, parentbus: "pci", parentdev: pciID });
    expect(added.interfaces).toMatchObject([{ name: "net1", mac: moved.address, mtu: 1500 }]);
    expect(added.interfaces[0].pciID).toBe(/PCI|ID/.test(what) ? pciID : undefined);
    expect(names()).not.toContain(name);
    await call("CHECK", conf({ ...named(), prevResult: added }));
    await call("DEL", conf(named()));
    expectHome();
  });
});

describe.each(["DEL", "GC"])("%s after its namespace died", (verb) => {
  test("it gets its name back, which the kernel does not do", async () => {
    await call("ADD", conf({ device: name }));
    c.close();
    await expect.poll(names, { timeout: 20_000 }).toContain("net1");
    expect(names()).not.toContain(name);
    const more = verb === "GC" ? { "cni.dev/valid-attachments": [] } : {};
    await call(verb, conf({ device: name, ...more }), verb === "GC" ? {} : { netns: c.path });
    expectHome();
  });
});

test("with a driver for programs such as DPDK it stays, and the result has the addresses", async (t) => {
  const bind = (to: string, from: string) => {
    writeFileSync(`/sys/bus/pci/devices/${pciID}/driver_override`, to);
    writeFileSync(`/sys/bus/pci/drivers/${from}/unbind`, pciID);
    writeFileSync("/sys/bus/pci/drivers_probe", pciID);
  };
  try {
    run("/run/vm/modprobe", "uio_pci_generic");
  } catch {
    t.skip("no module uio_pci_generic");
  }
  bind("uio_pci_generic", "e1000");
  try {
    const userspace = conf({ pciBusID: pciID });
    const added = await call("ADD", userspace);
    expect(added).toMatchObject({
      interfaces: [{ name: "net1", sandbox: c.path, pciID }],
      ips: [{ interface: 0, address: "10.88.0.2/24" }],
    });
    expect(ip(c, "link").map((link) => link.ifname)).toEqual(["lo"]);
    await call("CHECK", { ...userspace, prevResult: added });
    await call("STATUS", userspace);
    await call("DEL", userspace);
    expect(node.leases(network)).toEqual([]);
  } finally {
    bind("\n", "uio_pci_generic");
    await expect.poll(() => existsSync(`${driver}/${pciID}/net`), { timeout: 10_000 }).toBe(true);
  }
});
