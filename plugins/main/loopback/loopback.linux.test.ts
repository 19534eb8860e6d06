import { runPlugin as serve } from "@tscni/skel";
import {
  commandIn,
  distBin,
  goBin,
  hostState,
  ip,
  makeNamespace,
  runInProcess,
  runPlugin,
} from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import loopback from "./loopback.ts";

let ns: ReturnType<typeof makeNamespace>;
beforeEach(() => {
  ns = makeNamespace();
});
afterEach(() => ns.close());

const conf = (cniVersion: string, more: object = {}) => ({
  cniVersion,
  name: "lo-net",
  type: "loopback",
  ...more,
});

const envOf = (command: string, env: Record<string, string> = {}) => ({
  CNI_COMMAND: command,
  CNI_CONTAINERID: "c1",
  CNI_NETNS: ns.path,
  CNI_IFNAME: "eth0",
  ...env,
});

const call = (command: string, stdin: object, env: Record<string, string> = {}) =>
  runInProcess(loopback, { env: envOf(command, env), stdin });

const isUp = (): boolean => ip(ns, "link", "show", "dev", "lo")[0].flags.includes("UP");

/** What ADD prints, in the shape of each version. */
function expectedResult(cniVersion: string): object {
  if (!atLeast(cniVersion, "0.3.0"))
    return { cniVersion, ip4: { ip: "127.0.0.1/8" }, ip6: { ip: "::1/128" }, dns: {} };
  const lo = { name: "lo", mac: "00:00:00:00:00:00", sandbox: ns.path };
  const ips = [
    { interface: 0, address: "127.0.0.1/8" },
    { interface: 0, address: "::1/128" },
  ];
  if (atLeast(cniVersion, "1.0.0")) return { cniVersion, interfaces: [{ ...lo, mtu: 65536 }], ips };
  const versioned = ips.map((entry, i) => ({ version: i === 0 ? "4" : "6", ...entry }));
  return { cniVersion, interfaces: [lo], ips: versioned, dns: {} };
}

describe.each(specVersions)("cniVersion %s", (cniVersion) => {
  const canCheck = atLeast(cniVersion, "0.4.0");

  test("ADD brings lo up and says so in this version's shape; DEL takes it down", async () => {
    expect(isUp()).toBe(false);
    const added = await call("ADD", conf(cniVersion));
    expect(added).toMatchObject({ status: 0, stderr: "" });
    expect(added.json).toEqual(expectedResult(cniVersion));
    expect(isUp()).toBe(true);
    expect(ns.run("ping", "-c1", "-W1", "127.0.0.1")).toContain("1 received");

    if (canCheck) expect(await call("CHECK", conf(cniVersion))).toMatchObject({ status: 0, stdout: "" });
    expect(await call("DEL", conf(cniVersion))).toMatchObject({ status: 0, stdout: "" });
    expect(isUp()).toBe(false);
    expect(await call("DEL", conf(cniVersion)), "again").toMatchObject({ status: 0, stdout: "" });
  });

  test("ADD hands on the result of the plugins before it", async () => {
    const prevResult = atLeast(cniVersion, "0.3.0")
      ? { cniVersion, interfaces: [{ name: "eth0" }], ips: [{ version: "4", address: "10.1.0.2/16" }] }
      : { cniVersion, ip4: { ip: "10.1.0.2/16" } };
    const { status, json } = await call("ADD", conf(cniVersion, { prevResult }));
    expect(status).toBe(0);
    expect(json.ips?.[0].address ?? json.ip4.ip).toBe("10.1.0.2/16");
    expect(JSON.stringify(json)).not.toContain("127.0.0.1");
    expect(isUp()).toBe(true);
  });

  test("the Go plugin's ADD passes our CHECK and our DEL undoes it", async (ctx) => {
    const go = { bin: goBin("loopback", ctx), stdin: conf(cniVersion) };
    const added = await runPlugin({ ...go, env: envOf("ADD") });
    // Below 1.0.0 the Go plugin prints the shape of 1.0.0 under the old version's name.
    if (atLeast(cniVersion, "1.0.0")) {
      const { mtu, ...lo } = (expectedResult(cniVersion) as { interfaces: { mtu: number }[] }).interfaces[0]!;
      expect(mtu).toBe(65536);
      expect(added.json).toEqual({ ...expectedResult(cniVersion), interfaces: [lo] });
    }
    if (canCheck) expect(await call("CHECK", conf(cniVersion))).toMatchObject({ status: 0 });
    await call("DEL", conf(cniVersion));
    expect(isUp()).toBe(false);

    await call("ADD", conf(cniVersion));
    if (canCheck) expect(await runPlugin({ ...go, env: envOf("CHECK") })).toMatchObject({ status: 0 });
    expect(await runPlugin({ ...go, env: envOf("DEL") })).toMatchObject({ status: 0, stdout: "" });
    expect(isUp()).toBe(false);
  });
});

test.each(["10.9.9.9/32", "2001:db8::9/128"])(
  "refuses lo with %s, and leaves it as it was",
  async (address) => {
    ns.run("ip", "addr", "add", address, "dev", "lo");
    const before = hostState({ ns });
    const { status, json } = await call("ADD", conf("1.1.0"));
    expect(status).toBe(1);
    expect(json).toEqual({
      cniVersion: "1.1.0",
      code: 999,
      msg: `loopback interface found with non-loopback address "${address.split("/")[0]}"`,
    });
    expect(hostState({ ns })).toEqual(before);
  },
);

test("an ADD that fails leaves lo up if it was up", async () => {
  ns.run("ip", "link", "set", "lo", "up");
  ns.run("ip", "addr", "add", "10.9.9.9/32", "dev", "lo");
  expect(await call("ADD", conf("1.1.0"))).toMatchObject({ status: 1 });
  expect(isUp()).toBe(true);
});

test("an ADD whose result cannot be delivered takes lo down again", async () => {
  const env = { ...envOf("ADD"), CNI_PATH: distBin };
  const [texts, statuses]: [string[], number[]] = [[], []];
  await serve(loopback, {
    env,
    readStdin: () => JSON.stringify(conf("1.1.0")),
    writeStdout: () => {
      throw new Error("no space left on device");
    },
    writeStderr: (text) => texts.push(text),
    exit: (status) => statuses.push(status),
  });
  expect(statuses).toEqual([1]);
  expect(texts.join("")).toContain("no space left on device");
  expect(isUp()).toBe(false);
});

test("the first address of each family is the result's", async () => {
  ns.run("ip", "link", "set", "lo", "up");
  ns.run("ip", "addr", "add", "127.0.0.53/8", "dev", "lo");
  const { json } = await call("ADD", conf("1.1.0"));
  expect(json.ips.map((entry: { address: string }) => entry.address)).toEqual(["127.0.0.1/8", "::1/128"]);
});

test("without IPv6 the result has none", async () => {
  ns.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1");
  expect((await call("ADD", conf("0.2.0"))).json).toEqual({
    cniVersion: "0.2.0",
    ip4: { ip: "127.0.0.1/8" },
    dns: {},
  });
});

test("CHECK says that lo is down", async () => {
  const { status, json } = await call("CHECK", conf("1.0.0"));
  expect(status).toBe(1);
  expect(json).toEqual({ cniVersion: "1.0.0", code: 999, msg: "loopback interface is down" });
});

test("DEL succeeds when the namespace is gone", async () => {
  for (const netns of ["", "/run/netns/tscni-no-such", "/etc/hostname"])
    expect(await call("DEL", conf("1.1.0"), { CNI_NETNS: netns }), netns).toMatchObject({
      status: 0,
      stdout: "",
    });
});

test("STATUS and GC leave the host alone, and GC the container, too", async () => {
  const host = makeNamespace(); // of this test alone: others change the one that they share
  const callInHost = (command: string, more: object = {}) => {
    const [bin, ...args] = commandIn(host, [`${distBin}/loopback`]);
    const env = { ...envOf(command), CNI_PATH: distBin };
    return runPlugin({ bin: Bun.which(bin!)!, args, env, stdin: conf("1.1.0", more) });
  };
  const before = hostState({ ns: host });
  expect(await callInHost("STATUS")).toMatchObject({ status: 0, stdout: "" });
  expect(await callInHost("ADD")).toMatchObject({ status: 0 });
  const none = { "cni.dev/valid-attachments": [] };
  expect(await callInHost("GC", none)).toMatchObject({ status: 0, stdout: "" });
  expect(isUp(), "the container's own affair").toBe(true);
  expect(hostState({ ns: host })).toEqual(before);
  host.close();
});

test("STATUS is 50 for a process that may not enter namespaces", async () => {
  const { status, json } = await runPlugin({
    bin: "/usr/bin/setpriv",
    args: ["--bounding-set=-sys_admin", "--inh-caps=-sys_admin", `${distBin}/loopback`],
    env: envOf("STATUS"),
    stdin: conf("1.1.0"),
  });
  expect(status).toBe(1);
  expect(json).toMatchObject({ code: 50, msg: "cannot work in network namespaces" });
});
