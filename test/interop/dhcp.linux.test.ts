import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { distBin, ip, makeNode, type TestNode, temporaryFolder } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";

let node: TestNode;
let folder: ReturnType<typeof temporaryFolder>;
const running: Bun.Subprocess[] = [];

beforeEach((context) => {
  if (!Bun.which("dnsmasq")) context.skip("no dnsmasq (Debian: dnsmasq-base)");
  node = makeNode();
  folder = temporaryFolder();
});
afterEach(async () => {
  for (const child of running.splice(0)) {
    child.kill("SIGKILL");
    await child.exited;
  }
  node?.close();
  folder?.remove();
});

const path = (name: string) => join(folder.path, name);
const read = (name: string) => (existsSync(path(name)) ? readFileSync(path(name), "utf8") : "");

/** Starts something on the host; resolves when its log has the text. */
async function start(name: string, ready: string, ...command: string[]): Promise<void> {
  const file = Bun.file(path(name));
  const child = ["nsenter", `--net=${node.host.path}`, "--", ...command];
  running.push(Bun.spawn(child, { stdin: "ignore", stdout: file, stderr: file }));
  await until(() => read(name).includes(ready), `${name}: ${ready}`);
}

async function until(isSo: () => boolean, what: string): Promise<void> {
  for (const end = Date.now() + 15_000; !isSo(); await Bun.sleep(20))
    if (Date.now() > end) throw new Error(`${what}: not in time; ${read("dnsmasq")}${read("daemon")}`);
}

const serve = (device: string) =>
  start(
    "dnsmasq",
    "DHCP, IP range",
    "dnsmasq",
    "--no-daemon",
    "--conf-file=/dev/null",
    "--user=root",
    "--pid-file=",
    "--port=0",
    `--interface=${device}`,
    "--bind-interfaces",
    "--no-ping",
    "--dhcp-range=10.56.0.50,10.56.0.250,255.255.255.0,2m",
    `--dhcp-leasefile=${path("server-leases")}`,
    "--log-dhcp",
  );
const daemon = () =>
  start(
    "daemon",
    "listening",
    join(distBin, "dhcp"),
    "daemon",
    "-socketpath",
    path("s"),
    "-leasedir",
    path("leases"),
  );
const ipam = () => ({ type: "dhcp", daemonSocketPath: path("s") });

test("bridge: DEL tells the server while the container's interface is there, and late when it is not", async () => {
  node.host.run("ip", "link", "add", "brdhcp", "type", "bridge");
  node.host.run("ip", "addr", "add", "10.56.0.1/24", "dev", "brdhcp");
  node.host.run("ip", "link", "set", "brdhcp", "up");
  await Promise.all([serve("brdhcp"), daemon()]);
  const conf = { cniVersion: "1.1.0", name: "lan", type: "bridge", bridge: "brdhcp", ipam: ipam() };
  const netns = node.container();
  const result = await node.ok("ADD", conf, { netns });
  const address = result.ips[0].address.split("/")[0];
  expect(ip(netns, "-4", "addr", "show", "dev", "eth0")[0].addr_info).toMatchObject([
    { local: address, prefixlen: 24 },
  ]);
  netns.run("ping", "-c1", "-W2", "10.56.0.1");
  await node.ok("CHECK", { ...conf, prevResult: result }, { netns });
  await node.ok("STATUS", conf);
  await node.ok("DEL", conf, { netns });
  await until(() => read("dnsmasq").includes(`DHCPRELEASE(brdhcp) ${address}`), "the release");
  expect(read("daemon")).toContain("from the container");
  expect(read("server-leases")).not.toContain(address);

  // Another container, whose namespace goes before its DEL: through the bridge, as far as that carries.
  const other = node.container();
  await node.ok("ADD", conf, { netns: other, id: "c2" });
  other.close();
  await node.ok("DEL", conf, { id: "c2" });
  expect(read("daemon")).toMatch(/c2 eth0: sent RELEASE of .* through brdhcp/);
});

test("macvlan: a server elsewhere on the network hears even of a container that is gone", async () => {
  const lan = node.container(); // the network, with a server on it
  node.host.run("ip", "link", "add", "up0", "up", "type", "veth", "peer", "name", "lan0", "netns", lan.path);
  lan.run("ip", "addr", "add", "10.56.0.1/24", "dev", "lan0");
  lan.run("ip", "link", "set", "lan0", "up");
  const host = node.host;
  const there = { ...node, host: lan } as TestNode;
  node = there; // the server starts over there
  await serve("lan0");
  node = { ...there, host } as TestNode;
  await daemon();
  const conf = { cniVersion: "1.1.0", name: "lan", type: "macvlan", master: "up0", ipam: ipam() };
  const netns = node.container();
  const result = await node.ok("ADD", conf, { netns });
  const address = result.ips[0].address.split("/")[0];
  netns.run("ping", "-c1", "-W2", "10.56.0.1");
  netns.close();
  await node.ok("DEL", conf, {});
  await until(() => read("dnsmasq").includes(`DHCPRELEASE(lan0) ${address}`), "the release");
  expect(read("daemon")).toContain("through up0");
});
