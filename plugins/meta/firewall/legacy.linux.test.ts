import { dirname } from "node:path";
import { variantFolder, variants } from "@tscni/iptables/testing";
import { goBin, makeNode, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { callFirewall, confWith, firewallError, okFirewall, resultWith } from "./testing.ts";

/* iptables as it was before nftables: other tables in the kernel, and one lock for all programs. */

const addresses = ["10.206.0.5/24", "fd06::5/64"];
const policies = ["open", "same-bridge", "isolated"];
const conf = (more: object = {}) => confWith({ name: "fwlegacy", backend: "iptables", ...more });
const attached = (more: object = {}) => conf({ ...more, prevResult: resultWith(addresses, "brfwl") });

let node: TestNode;
let more: { env: Record<string, string> };
beforeEach((test) => {
  if (!variants.includes("legacy")) test.skip("no iptables-legacy: install the package iptables");
  node = makeNode();
  const env = { PATH: `${variantFolder("legacy")}:${process.env.PATH}` };
  more = { env: { ...env, DBUS_SYSTEM_BUS_ADDRESS: "unix:path=/nonexistent" } };
});
afterEach(() => node?.close());

const traces = () =>
  ["iptables-legacy-save", "ip6tables-legacy-save"]
    .flatMap((name) => node.host.run(name, "-t", "filter").split("\n"))
    .filter((line) => /10\.206\.0\.5|fd06::5/.test(line));

describe.each(policies)("iptables-legacy, %s", (ingressPolicy) => {
  test("ADD, CHECK, flushed, repaired, DEL", async () => {
    await okFirewall(node, "ADD", attached({ ingressPolicy }), more);
    expect(traces()).toHaveLength(4);
    await okFirewall(node, "CHECK", attached({ ingressPolicy }), more);
    for (const name of ["iptables-legacy", "ip6tables-legacy"]) node.host.run(name, "-F");
    expect((await firewallError(node, "CHECK", attached({ ingressPolicy }), more)).msg).toContain("lacks");
    await okFirewall(node, "CHECK", { ...attached({ ingressPolicy }), "tscni/repair": true }, more);
    await okFirewall(node, "DEL", conf({ ingressPolicy }), more);
    expect(traces()).toEqual([]);
  });

  test("hand-over with the Go plugin both ways", async (test) => {
    const go = { ...more, bin: dirname(goBin("firewall", test)) };
    await okFirewall(node, "ADD", attached({ ingressPolicy }), go);
    await okFirewall(node, "CHECK", attached({ ingressPolicy }), more);
    await okFirewall(node, "DEL", attached({ ingressPolicy }), more);
    expect(traces()).toEqual([]);
    await okFirewall(node, "ADD", attached({ ingressPolicy }), more);
    await okFirewall(node, "CHECK", attached({ ingressPolicy }), go);
    await okFirewall(node, "DEL", attached({ ingressPolicy }), go);
    expect(traces()).toEqual([]);
    await okFirewall(node, "DEL", conf(), more);
  });
});

test("another program holds the lock for a while: waited for", async () => {
  const lock = { XTABLES_LOCKFILE: "/run/tscni-fw-test.lock" };
  const locked = { env: { ...more.env, ...lock } };
  await okFirewall(node, "ADD", attached(), locked);
  const holder = Bun.spawn(["flock", lock.XTABLES_LOCKFILE, "sh", "-c", "echo held; sleep 0.7"], {
    stdout: "pipe",
  });
  await holder.stdout.getReader().read();
  const { status, ms } = await callFirewall(node, "DEL", conf(), locked);
  expect(status).toBe(0);
  expect(ms).toBeGreaterThan(300);
  expect(traces()).toEqual([]);
  await holder.exited;
});
