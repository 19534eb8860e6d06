import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { distBin, ip, runPlugin } from "@tscni/test-support";
import { specVersions } from "@tscni/types";
import { afterEach, beforeEach, expect, test } from "vitest";
import { assign, isUp, type Lab, makeLab, type Running, until } from "./testing.ts";

let lab: Lab;
beforeEach((context) => {
  if (!Bun.which("dnsmasq")) context.skip("no dnsmasq (Debian: dnsmasq-base)");
  lab = makeLab();
});
afterEach(() => lab?.close());

const serverLeases = () => {
  const path = join(lab.folder, "server-leases");
  return existsSync(path) ? readFileSync(path, "utf8") : "";
};

async function dnsmasq(...options: string[]): Promise<Running> {
  const server = lab.start(
    "dnsmasq",
    "dnsmasq",
    "--no-daemon",
    "--conf-file=/dev/null",
    "--user=root",
    "--pid-file=",
    "--port=0",
    "--interface=br0",
    "--bind-interfaces",
    "--no-ping",
    "--log-dhcp",
    "--dhcp-authoritative",
    "--dhcp-range=10.55.0.50,10.55.0.250,255.255.255.0,2m",
    `--dhcp-leasefile=${join(lab.folder, "server-leases")}`,
    ...options,
  );
  await until("dnsmasq serves", () => server.log().includes("DHCP, IP range"));
  return server;
}

const dns = [
  "--dhcp-option=3,10.55.0.1",
  "--dhcp-option=6,10.55.0.53,10.55.0.54",
  "--dhcp-option=15,example.org",
  "--dhcp-option=119,a.example.org,b.example.org",
];
/** Renewal and rebinding after these seconds. (dnsmasq moves T1 to right before T2.) */
const times = (t1: number, t2: number) => [`--dhcp-option-force=58,${t1}`, `--dhcp-option-force=59,${t2}`];

test("ADD, CHECK, DEL: address, routes, DNS, host name; the server hears of the release", async () => {
  const server = await dnsmasq(...dns);
  await lab.daemon();
  const ns = lab.container();
  const args = "IgnoreUnknown=1;K8S_POD_NAME=web-0";
  const result = await lab.call("ADD", { ns, args, ipam: { priority: 7 } });
  expect(result).toMatchObject({
    status: 0,
    ips: [{ address: expect.stringMatching(/^10\.55\.0\.\d+\/24$/), gateway: "10.55.0.1" }],
    routes: [{ dst: "0.0.0.0/0", gw: "10.55.0.1", priority: 7 }],
    dns: {
      nameservers: ["10.55.0.53", "10.55.0.54"],
      domain: "example.org",
      search: ["a.example.org", "b.example.org"],
    },
  });
  const address = result.ips[0].address.split("/")[0];
  const clientId = [0, ...Buffer.from("c1/lan/eth0")].map((b) => b.toString(16).padStart(2, "0")).join(":");
  expect(serverLeases()).toContain(`${address} web-0 ${clientId}`);
  expect(await lab.leases()).toMatchObject([
    { containerId: "c1", state: "bound", address: result.ips[0].address, server: "10.55.0.1" },
  ]);

  // The same again is the same lease, and CHECK asks nobody.
  expect((await lab.call("ADD", { ns })).ips).toEqual(result.ips);
  const before = server.log();
  const prevResult = { cniVersion: "1.1.0", ips: result.ips };
  expect(await lab.call("CHECK", { ns, conf: { prevResult } })).toMatchObject({ status: 0 });
  const other = { cniVersion: "1.1.0", ips: [{ address: "10.55.0.2/24" }] };
  expect((await lab.call("CHECK", { ns, conf: { prevResult: other } })).msg).toContain(result.ips[0].address);
  expect((await lab.call("CHECK", { ns, id: "c2" })).msg).toContain("has no lease of lan c2 eth0");
  expect(server.log()).toBe(before);

  expect(await lab.call("DEL", { ns })).toMatchObject({ status: 0 });
  await until("dnsmasq has the release", () => server.log().includes(`DHCPRELEASE(br0) ${address}`));
  expect(serverLeases()).not.toContain(address);
  expect(await lab.leases()).toEqual([]);
  expect(readdirSync(lab.leaseDir)).toEqual(["lock"]);
  expect(await lab.call("DEL", { ns })).toMatchObject({ status: 0 });
});

test("options that the config asks for and provides: classless routes, a client id, no defaults", async () => {
  const server = await dnsmasq(...dns, "--dhcp-option=121,192.168.9.0/24,10.55.0.9,0.0.0.0/0,10.55.0.8");
  await lab.daemon();
  const provide = [
    { option: "dhcp-client-identifier", value: "me" },
    { option: 60, fromArg: "VENDOR" },
  ];
  const request = [{ skipDefault: true }, { option: "121" }, { option: "subnet-mask" }];
  const result = await lab.call("ADD", {
    ns: lab.container(),
    args: "VENDOR=acme",
    ipam: { provide, request },
  });
  expect(result.routes).toEqual([
    { dst: "192.168.9.0/24", gw: "10.55.0.9" },
    { dst: "0.0.0.0/0", gw: "10.55.0.8" },
  ]);
  expect(result).not.toHaveProperty("dns");
  expect(serverLeases()).toMatch(/ 6d:65$/m);
  expect(server.log()).toContain("vendor class: acme");
});

test("renewed at T1 by unicast, over and over; a daemon that is killed is no loss", async () => {
  const server = await dnsmasq(...times(2, 3));
  const daemon = await lab.daemon();
  const ns = lab.container();
  const result = await lab.call("ADD", { ns });
  assign(ns, result);
  await until("it is renewed", () => daemon.log().includes("sent REQUEST to 10.55.0.1"));
  await until("it is bound again", () => daemon.log().split("bound to").length > 2);
  expect(server.log()).not.toContain("NAK");
  await daemon.kill("SIGKILL"); // leaves its socket behind
  expect(await lab.call("CHECK", { ns })).toMatchObject({ status: 1, code: 11 });
  expect(await lab.call("STATUS", {})).toMatchObject({ status: 1, code: 50 });
  const next = await lab.daemon();
  expect(await lab.call("STATUS", {})).toMatchObject({ status: 0 });
  expect((await lab.leases()).map((lease) => lease.address)).toEqual([result.ips[0].address]);
  await until("it is renewed again", () => next.log().includes("bound to"));
  expect(next.log()).not.toContain("DISCOVER");
  expect(await lab.call("CHECK", { ns })).toMatchObject({ status: 0 });
  expect(await next.kill()).toBe(0);
  expect(existsSync(join(lab.folder, "dhcp.sock"))).toBe(false);
});

test("a server that forgot the lease refuses: it gives the address again, or the interface goes down", async () => {
  const server = await dnsmasq(...times(3, 4));
  const daemon = await lab.daemon("-timeout", "1s");
  const [ns, other] = [lab.container(), lab.container()];
  const result = await lab.call("ADD", { ns });
  const theirs = await lab.call("ADD", { ns: other, id: "c2" });
  assign(ns, result);
  assign(other, theirs);
  await server.kill();
  // The next server knows nobody, has the first one's address reserved for somebody else, and says no to strangers.
  writeFileSync(join(lab.folder, "server-leases"), "");
  const address = result.ips[0].address.split("/")[0];
  await dnsmasq(...times(60, 90), `--dhcp-host=02:00:00:00:00:01,${address}`);
  await until("the first is lost", () => daemon.log().includes(`the lease of ${address} is lost`));
  expect(daemon.log()).toMatch(/refused \(NAK\)/);
  expect(isUp(ns)).toBe(false);
  expect(await lab.call("CHECK", { ns })).toMatchObject({
    status: 1,
    msg: expect.stringContaining("is lost"),
  });
  expect((await lab.leases()).find((lease) => lease.containerId === "c1")).toMatchObject({
    state: "expired",
  });
  // The authoritative server takes the second one's word for its address.
  await until("the second goes on", async () =>
    (await lab.leases()).some((l) => l.containerId === "c2" && l.renewsIn > 30),
  );
  expect(isUp(other)).toBe(true);
});

test("without the daemon DEL succeeds, and the next daemon releases what has no container; GC what is not valid", async () => {
  const server = await dnsmasq();
  const daemon = await lab.daemon();
  const containers = [lab.container(), lab.container(), lab.container()];
  const addresses: string[] = [];
  for (const [i, ns] of containers.entries())
    addresses.push((await lab.call("ADD", { ns, id: `c${i}` })).ips[0].address.split("/")[0]);
  await daemon.kill("SIGKILL");
  const del = await lab.call("DEL", { ns: containers[0]!, id: "c0" });
  expect(del).toMatchObject({
    status: 0,
    stderr: expect.stringContaining("the lease is released when the daemon starts"),
  });
  containers[0]!.run("ip", "link", "del", "eth0");
  const next = await lab.daemon();
  expect(next.log()).toContain("lan c0 eth0: its container went while there was no daemon");
  expect((await lab.leases()).map((lease) => lease.containerId).toSorted()).toEqual(["c1", "c2"]);
  expect(next.log()).toContain("sent RELEASE");

  const valid = { "cni.dev/valid-attachments": [{ containerID: "c2", ifname: "eth0" }] };
  expect(await lab.call("GC", {})).toMatchObject({ status: 0 }); // nobody said what is valid
  expect(await lab.leases()).toHaveLength(2);
  expect((await lab.call("GC", { conf: valid })).stderr).toContain(`released lan c1 eth0 ${addresses[1]}`);
  await until("dnsmasq has the release", () => server.log().includes(`DHCPRELEASE(br0) ${addresses[1]}`));
  expect((await lab.leases()).map((lease) => lease.containerId)).toEqual(["c2"]);
  // The daemon sees by itself that a container is gone only when it would renew.
  expect(await lab.call("GC", { conf: { ...valid, name: "othernet" } })).toMatchObject({ status: 0 });
  expect(await lab.leases()).toHaveLength(1);
});

test("fifty containers at once, each with an address of its own, one daemon", async () => {
  await dnsmasq("--dhcp-lease-max=500");
  await lab.daemon();
  const containers = Array.from({ length: 50 }, () => lab.container());
  const results = await Promise.all(containers.map((ns, i) => lab.call("ADD", { ns, id: `m${i}` })));
  expect(results.map(({ status }) => status)).toEqual(containers.map(() => 0));
  expect(new Set(results.map((result) => result.ips[0].address)).size).toBe(50);
  expect(await lab.leases()).toHaveLength(50);
  await Promise.all(containers.map((ns, i) => lab.call("DEL", { ns, id: `m${i}` })));
  await until("the server has all back", () => serverLeases().trim() === "");
});

test("an ADD that nobody waits for any more is given up", async () => {
  const daemon = await lab.daemon(); // and no server
  const ns = lab.container();
  const pending = lab.call("ADD", { ns });
  await until("it asks", async () => (await lab.leases()).some((lease) => lease.state === "acquiring"));
  expect(await lab.call("DEL", { ns })).toMatchObject({ status: 0 });
  expect(await pending).toMatchObject({
    status: 1,
    code: 11,
    msg: expect.stringContaining("was released before"),
  });
  expect(await lab.leases()).toEqual([]);
  expect(ip(ns, "addr", "show", "dev", "eth0")[0].flags).toContain("UP");
  expect(daemon.log()).toContain("sent DISCOVER");
});

test("no server: the error tells what was tried", async () => {
  await lab.daemon("-resendtimeout", "1500ms", "-resendmax", "300ms");
  const error = await lab.call("ADD", { ns: lab.container() });
  expect(error).toMatchObject({ status: 1, code: 11, msg: "no more tries" });
  expect(error.details).toMatch(/^sent \d+ × DISCOVER; no DHCP packet came back$/);
  expect(await lab.leases()).toEqual([]);
});

test("an ADD whose result nobody can read gives the lease back", async () => {
  const server = await dnsmasq();
  await lab.daemon();
  const ns = lab.container();
  const stdin = {
    cniVersion: "1.1.0",
    name: "lan",
    ipam: { daemonSocketPath: join(lab.folder, "dhcp.sock") },
  };
  const env = { CNI_COMMAND: "ADD", CNI_CONTAINERID: "c1", CNI_NETNS: ns.path, CNI_IFNAME: "eth0" };
  const script = `exec ${join(distBin, "dhcp")} >/dev/full`;
  const outcome = await runPlugin({ bin: "/bin/sh", args: ["-c", script], env, stdin });
  expect(outcome.status).toBe(1);
  await until("dnsmasq has the release", () => server.log().includes("DHCPRELEASE(br0)"));
  expect(await lab.leases()).toEqual([]);
});

test("every version of the spec", async () => {
  await dnsmasq();
  await lab.daemon();
  const ns = lab.container();
  for (const cniVersion of specVersions) {
    const result = await lab.call("ADD", { ns, conf: { cniVersion } });
    expect(result).toMatchObject({ status: 0, cniVersion });
    expect(JSON.stringify(result), cniVersion).toMatch(/"10\.55\.0\.\d+\/24"/);
    expect(await lab.call("DEL", { ns, conf: { cniVersion } })).toMatchObject({ status: 0 });
  }
});

test("a plugin that is killed while it waits leaves nothing behind", async () => {
  const daemon = await lab.daemon();
  const ns = lab.container();
  const stdin = {
    cniVersion: "1.1.0",
    name: "lan",
    ipam: { daemonSocketPath: join(lab.folder, "dhcp.sock") },
  };
  const env = {
    CNI_COMMAND: "ADD",
    CNI_CONTAINERID: "c1",
    CNI_NETNS: ns.path,
    CNI_IFNAME: "eth0",
    CNI_PATH: "/x",
  };
  const plugin = Bun.spawn([join(distBin, "dhcp")], { env, stdin: Buffer.from(JSON.stringify(stdin)) });
  await until("it asks", () => daemon.log().includes("sent DISCOVER"));
  plugin.kill("SIGKILL");
  await until("the daemon gives up", async () => (await lab.leases()).length === 0);
  await dnsmasq();
  expect(await lab.call("ADD", { ns })).toMatchObject({ status: 0 });
});
