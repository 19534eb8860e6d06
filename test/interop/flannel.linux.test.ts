import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  goBin,
  ip,
  makeNamespace,
  makeNode,
  type TestNamespace,
  type TestNode,
  temporaryFolder,
} from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";

const running: Bun.Subprocess[] = [];
const nodes: TestNode[] = [];
const namespaces: TestNamespace[] = [];
let folder: ReturnType<typeof temporaryFolder>;
let flanneld: string;

beforeEach((context) => {
  folder = temporaryFolder();
  flanneld = goBin("flanneld", context);
  if (!Bun.which("etcd")) context.skip("no etcd (Debian: etcd-server)");
});
afterEach(async () => {
  for (const child of running.splice(0)) {
    child.kill("SIGKILL");
    await child.exited;
  }
  for (const each of [...nodes.splice(0), ...namespaces.splice(0)]) each.close();
  folder.remove();
});

async function until(what: string, isSo: () => boolean): Promise<void> {
  for (const end = Date.now() + 20_000; !isSo(); await Bun.sleep(50)) {
    if (Date.now() < end) continue;
    const logs = readdirSync(folder.path).filter((name) => name.endsWith(".log"));
    throw new Error(
      `${what}: not in time\n${logs.map((name) => readFileSync(join(folder.path, name), "utf8")).join("\n")}`,
    );
  }
}

function start(ns: TestNamespace, name: string, ...command: string[]): void {
  const log = Bun.file(join(folder.path, `${name}.log`));
  const child = ["nsenter", `--net=${ns.path}`, "--", ...command];
  running.push(
    Bun.spawn(child, { stdin: "ignore", stdout: log, stderr: log, env: { ...process.env, NODE_NAME: name } }),
  );
}

const etcdUrl = "http://192.0.2.1:2379";

/** etcd, and flannel's configuration in it, on a network of its own. */
async function startEtcd(lan: TestNamespace, config: object): Promise<void> {
  const data = join(folder.path, "etcd");
  mkdirSync(data, { mode: 0o700 });
  start(
    lan,
    "etcd",
    "etcd",
    "--data-dir",
    data,
    "--listen-client-urls",
    etcdUrl,
    "--advertise-client-urls",
    etcdUrl,
    "--listen-peer-urls",
    "http://127.0.0.1:2380",
  );
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const body = JSON.stringify({
    key: base64("/coreos.com/network/config"),
    value: base64(JSON.stringify(config)),
  });
  const put = `for (let i = 0; i < 100; i++) try {
    const answer = await fetch("${etcdUrl}/v3/kv/put", { method: "POST", body: ${JSON.stringify(body)} });
    if (answer.ok) process.exit(0);
  } catch {} finally { await Bun.sleep(100); }
  process.exit(1);`;
  lan.run(process.execPath, "-e", put);
}

/** A machine on the network with flanneld; resolves when that has a subnet. Returns where it says which. */
async function startNode(
  lan: TestNamespace,
  number: number,
): Promise<{ node: TestNode; subnetFile: string }> {
  const node = makeNode();
  nodes.push(node);
  const port = `p${number}`;
  lan.run(
    "ip",
    "link",
    "add",
    port,
    "master",
    "br0",
    "up",
    "type",
    "veth",
    "peer",
    "name",
    "up0",
    "netns",
    node.host.path,
  );
  node.host.run("ip", "addr", "add", `192.0.2.${10 + number}/24`, "dev", "up0");
  node.host.run("ip", "link", "set", "up0", "up");
  node.host.run("sysctl", "-qw", "net.ipv4.ip_forward=1");
  const subnetFile = join(folder.path, `subnet-${number}.env`);
  start(
    node.host,
    `flanneld-${number}`,
    flanneld,
    "-etcd-endpoints",
    etcdUrl,
    "-iface",
    "up0",
    "-subnet-file",
    subnetFile,
    "-healthz-port",
    "0",
  );
  await until(`flanneld ${number} has a subnet`, () => existsSync(subnetFile));
  return { node, subnetFile };
}

test.each(["host-gw", "vxlan"])(
  "containers of two machines reach one another by flanneld's %s",
  async (Type) => {
    const lan = makeNamespace("lan");
    namespaces.push(lan);
    lan.run("ip", "link", "set", "lo", "up");
    lan.run("ip", "link", "add", "br0", "type", "bridge");
    lan.run("ip", "addr", "add", "192.0.2.1/24", "dev", "br0");
    lan.run("ip", "link", "set", "br0", "up");
    await startEtcd(lan, { Network: "10.98.0.0/16", Backend: { Type } });
    const machines = [await startNode(lan, 1), await startNode(lan, 2)];
    const attached: { netns: TestNamespace; address: string }[] = [];
    for (const [i, { node, subnetFile }] of machines.entries()) {
      const env = Object.fromEntries(
        readFileSync(subnetFile, "utf8")
          .trim()
          .split("\n")
          .map((line) => line.split("=")),
      );
      const conf = {
        cniVersion: "1.1.0",
        name: "cbr0",
        type: "flannel",
        subnetFile,
        dataDir: join(folder.path, `data-${i}`),
        delegate: { isDefaultGateway: true },
        ipam: { dataDir: node.dataDir },
      };
      const netns = node.container();
      await node.ok("STATUS", conf);
      const result = await node.ok("ADD", conf, { netns });
      const address = result.ips[0].address.split("/")[0];
      expect(env.FLANNEL_SUBNET.split(".").slice(0, 3)).toEqual(address.split(".").slice(0, 3));
      expect(ip(netns, "link", "show", "dev", "eth0")[0].mtu).toBe(Number(env.FLANNEL_MTU));
      await node.ok("CHECK", { ...conf, prevResult: result }, { netns });
      attached.push({ netns, address });
    }
    const [one, two] = attached as [(typeof attached)[0], (typeof attached)[0]];
    const reaches = () => {
      try {
        return one.netns.run("ping", "-c1", "-W1", two.address).includes("1 received");
      } catch {
        return false;
      }
    };
    await until("a packet from one machine's container to the other's", reaches);
  },
);

test("files of the reference are taken over, and Go's bridge takes what is in ours", async (context) => {
  const node = makeNode();
  nodes.push(node);
  const subnetFile = join(folder.path, "subnet.env");
  writeFileSync(
    subnetFile,
    "FLANNEL_NETWORK=10.97.0.0/16\nFLANNEL_SUBNET=10.97.3.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n",
  );
  const dataDir = join(folder.path, "data");
  const conf = {
    cniVersion: "1.0.0",
    name: "cbr0",
    type: "flannel",
    subnetFile,
    dataDir,
    ipam: { dataDir: node.dataDir },
  };
  const netns = node.container();
  await node.ok("ADD", conf, { netns });
  const written = JSON.parse(readFileSync(join(dataDir, "c1"), "utf8"));
  // What the reference needs of it for DEL, and what Go's bridge, which it would run, takes.
  const { "tscni-ifname": ifName, ...reference } = written;
  expect(ifName).toBe("eth0");
  expect(reference).toEqual({
    name: "cbr0",
    cniVersion: "1.0.0",
    type: "bridge",
    isGateway: true,
    ipMasq: false,
    mtu: 1450,
    ipam: {
      type: "host-local",
      dataDir: node.dataDir,
      ranges: [[{ subnet: "10.97.3.0/24" }]],
      routes: [{ dst: "10.97.0.0/16" }],
    },
  });
  // As the reference writes it: the same without our key.
  writeFileSync(join(dataDir, "c1"), JSON.stringify(reference));
  await node.ok("DEL", conf, { netns });
  expect([node.leases("cbr0"), node.veths(), existsSync(join(dataDir, "c1"))]).toEqual([[], [], false]);

  await node.ok("ADD", conf, { netns });
  const ours = JSON.parse(readFileSync(join(dataDir, "c1"), "utf8"));
  await node.ok("DEL", ours, { netns, bin: dirname(goBin("bridge", context)) });
  expect([node.leases("cbr0"), node.veths()]).toEqual([[], []]);
  await node.ok("DEL", conf, { netns });
  expect(existsSync(join(dataDir, "c1"))).toBe(false);
});
