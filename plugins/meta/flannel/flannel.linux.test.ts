import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ip, makeNode, type TestNode, temporaryFolder } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";

let node: TestNode;
let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  node = makeNode();
  folder = temporaryFolder();
  writeEnv();
});
afterEach(() => {
  node.close();
  folder.remove();
});

const subnetFile = () => join(folder.path, "subnet.env");
const scratch = () => join(folder.path, "data");
const writeEnv = (subnet = "10.77.5.1/24") =>
  writeFileSync(
    subnetFile(),
    `FLANNEL_NETWORK=10.77.0.0/16\nFLANNEL_SUBNET=${subnet}\nFLANNEL_MTU=1430\nFLANNEL_IPMASQ=true\n`,
  );
const conf = (more: object = {}) => ({
  cniVersion: "1.1.0",
  name: "flan",
  type: "flannel",
  subnetFile: subnetFile(),
  dataDir: scratch(),
  delegate: { bridge: "brflan" },
  ipam: { dataDir: node.dataDir },
  ...more,
});
const leases = () => node.leases("flan");
const files = () => (existsSync(scratch()) ? readdirSync(scratch()).toSorted() : []);
const read = (name: string) => JSON.parse(readFileSync(join(scratch(), name), "utf8"));

test("ADD, CHECK and DEL of a bridge on the node's subnet, with its MTU and the cluster's route", async () => {
  const netns = node.container();
  const result = await node.ok("ADD", conf(), { netns });
  expect(result.ips).toMatchObject([{ address: "10.77.5.2/24", gateway: "10.77.5.1" }]);
  expect(result.routes).toEqual([{ dst: "10.77.0.0/16" }]);
  expect(ip(netns, "link", "show", "dev", "eth0")).toMatchObject([{ mtu: 1430 }]);
  expect(ip(netns, "-4", "route", "show", "10.77.0.0/16")).toMatchObject([{ gateway: "10.77.5.1" }]);
  expect(read("c1")).toMatchObject({ type: "bridge", name: "flan", cniVersion: "1.1.0", ipMasq: false });
  expect(statSync(join(scratch(), "c1")).mode & 0o777).toBe(0o600);
  expect(statSync(scratch()).mode & 0o777).toBe(0o700);

  await node.ok("CHECK", conf({ prevResult: result }), { netns });
  netns.run("ip", "addr", "flush", "dev", "eth0");
  expect((await node.error("CHECK", conf({ prevResult: result }), { netns })).msg).toContain("10.77.5.2");

  writeEnv("10.77.99.1/24"); // flanneld got another subnet: what is there goes by what it was made by
  await node.ok("DEL", conf(), { netns });
  await node.ok("DEL", conf(), { netns });
  expect([files(), leases(), node.veths()]).toEqual([[], [], []]);
});

test("two interfaces of one container have files of their own", async () => {
  const netns = node.container();
  await node.ok("ADD", conf(), { netns });
  await node.ok("ADD", conf(), { netns, ifName: "eth1" });
  expect(files()).toEqual(["c1", "c1:eth1"]);
  await node.ok("DEL", conf(), { netns });
  expect([files(), leases().filter((l) => l.includes("10."))]).toEqual([["c1:eth1"], ["10.77.5.3"]]);
  expect((await node.error("CHECK", conf(), { netns })).msg).toContain("no config of a delegate");
  await node.ok("DEL", conf(), { netns, ifName: "eth1" });
  expect([files(), leases()]).toEqual([[], []]);
});

test("a DEL that fails leaves the file for the next", async () => {
  const netns = node.container();
  await node.ok("ADD", conf(), { netns });
  const damaged = { ...read("c1"), ipam: { type: "no-such-plugin" } };
  writeFileSync(join(scratch(), "c1"), JSON.stringify(damaged));
  expect((await node.error("DEL", conf(), { netns })).msg).toContain("no-such-plugin");
  expect(files()).toEqual(["c1"]);
});

test("an empty file, as the reference's writes leave it in a crash, is rebuilt", async () => {
  const netns = node.container();
  await node.ok("ADD", conf(), { netns });
  writeFileSync(join(scratch(), "c1"), "");
  await node.ok("DEL", conf(), { netns });
  expect([files(), leases(), node.veths()]).toEqual([[], [], []]);
});

test("an ADD whose delegate fails leaves nothing", async () => {
  const netns = node.container();
  netns.run("ip", "link", "add", "eth0", "type", "bridge");
  const error = await node.error("ADD", conf(), { netns });
  expect(error.msg).toMatch(/^failed to delegate add: /);
  expect([files(), leases(), node.veths()]).toEqual([[], [], []]);
  const missing = await node.error("ADD", conf({ delegate: { type: "no-such-plugin" } }), { netns });
  expect(missing.msg).toContain("no-such-plugin");
});

test("without subnet.env: ADD is to be tried again, STATUS is 50, DEL works", async () => {
  const netns = node.container();
  await node.ok("ADD", conf(), { netns });
  await node.ok("STATUS", conf());
  const gone = { ...conf(), subnetFile: join(folder.path, "none") };
  expect(await node.error("STATUS", gone)).toMatchObject({
    code: 50,
    msg: expect.stringMatching(
      /^failed to load flannel 'subnet.env' file: .*none.*Check the flannel pod log/,
    ),
  });
  expect(await node.error("ADD", gone, { netns, ifName: "eth1" })).toMatchObject({ code: 11 });
  await node.ok("DEL", gone, { netns });
  expect([files(), leases()]).toEqual([[], []]);
});

test("GC takes what is not valid, of this network, and has the delegate collect, too", async () => {
  const [one, two] = [node.container(), node.container()];
  await node.ok("ADD", conf(), { netns: one });
  await node.ok("ADD", conf(), { netns: two, id: "c2" });
  await node.ok("GC", conf());
  expect(files()).toEqual(["c1", "c2"]);
  writeFileSync(join(scratch(), "c3"), JSON.stringify({ ...read("c1"), name: "other" }));
  await node.ok("GC", conf({ "cni.dev/valid-attachments": [{ containerID: "c2", ifname: "eth0" }] }));
  expect([files(), leases()]).toEqual([["c2", "c3"], ["10.77.5.3"]]);
  expect(node.veths()).toHaveLength(1);
});

test.each(["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"])(
  "version %s",
  async (cniVersion) => {
    const netns = node.container();
    expect(await node.ok("ADD", conf({ cniVersion }), { netns })).toMatchObject({ cniVersion });
    await node.ok("DEL", conf({ cniVersion }), { netns });
    expect([files(), leases()]).toEqual([[], []]);
  },
);
