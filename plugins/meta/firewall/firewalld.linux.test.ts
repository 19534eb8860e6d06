import { rmSync } from "node:fs";
import {
  makeNode,
  startBus,
  startFirewalld,
  type TestBus,
  type TestFirewalld,
  type TestNode,
} from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  callFirewall,
  confWith,
  elementsIn,
  firewallError,
  okFirewall,
  resultWith,
  rulesOf,
} from "./testing.ts";

const addresses = ["10.203.0.5/24", "fd03::5/64"];
const sources = ["10.203.0.5/32", "fd03::5/128"];
const network = "fwdnet";

let node: TestNode;
let bus: TestBus;
let firewalld: TestFirewalld;
let env: Record<string, string>;
beforeEach(async (test) => {
  node = makeNode();
  bus = (await startBus()) ?? test.skip("no dbus-daemon: install the package dbus-daemon");
  firewalld =
    (await startFirewalld(bus, node.host)) ?? test.skip("no firewalld: install the package firewalld");
  env = { DBUS_SYSTEM_BUS_ADDRESS: bus.address };
});
afterEach(async () => {
  await firewalld?.close();
  await bus?.close();
  node.close();
  rmSync(`/run/tscni/firewall/${network}`, { recursive: true, force: true });
});

const conf = (more: object = {}) => confWith({ name: network, ...more });
const attached = (more: object = {}) => conf({ ...more, prevResult: resultWith(addresses, "brfwd") });
const ok = (verb: string, config: object, more: object = {}) =>
  okFirewall(node, verb, config, { env, ...more });
const error = (verb: string, config: object) => firewallError(node, verb, config, { env });
const sourcesOf = (zone = "trusted") =>
  firewalld.command(`--zone=${zone}`, "--list-sources").trim().split(" ").filter(Boolean).toSorted();

describe.each(["firewalld", ""])("with a real firewalld, backend %j", (backend) => {
  test("ADD, CHECK, ADD again, DEL without a previous result", async () => {
    const added = await callFirewall(node, "ADD", attached({ backend }), { env });
    expect(added.json).toEqual(resultWith(addresses, "brfwd"));
    expect(sourcesOf()).toEqual(sources);
    await ok("CHECK", attached({ backend }));
    await ok("ADD", attached({ backend }));
    expect(sourcesOf()).toEqual(sources);
    expect(rulesOf(node, 4, "CNI-FORWARD")).toEqual([]);
    await ok("DEL", conf());
    expect(sourcesOf()).toEqual([]);
    await ok("DEL", attached({ backend }));
    expect((await error("CHECK", attached({ backend }))).msg).toMatch(/is not in firewalld's zone "trusted"/);
  });

  test("a reload forgets the addresses: CHECK says so, repair puts them back", async () => {
    await ok("ADD", attached({ backend, firewalldZone: "internal" }));
    firewalld.command("--reload");
    expect(sourcesOf("internal")).toEqual([]);
    const { msg } = await error("CHECK", attached({ backend, firewalldZone: "internal" }));
    expect(msg).toBe(`10.203.0.5/32 is not in firewalld's zone "internal"`);
    await ok("CHECK", { ...attached({ backend, firewalldZone: "internal" }), "tscni/repair": true });
    expect(sourcesOf("internal")).toEqual(sources);
    await ok("DEL", conf());
    expect(sourcesOf("internal")).toEqual([]);
  });

  test("GC, and a late DEL of an address's previous owner", async () => {
    await ok("ADD", attached({ backend }), { id: "old" });
    await ok("ADD", attached({ backend }), { id: "new" });
    await ok("DEL", attached({ backend }), { id: "old" });
    expect(sourcesOf()).toEqual(sources);
    const said = await ok("GC", conf({ "cni.dev/valid-attachments": [] }));
    expect(said).toContain("gc: removed rules of new eth0");
    expect(sourcesOf()).toEqual([]);
  });

  test("firewalld ends: its addresses are gone, and DEL succeeds", async () => {
    await ok("ADD", attached({ backend }));
    await firewalld.close();
    await ok("DEL", attached({ backend }));
    await bus.kill();
    await ok("DEL", attached({ backend }));
  });

  test("a policy is kept by iptables beside it", async () => {
    const own = { backend, ingressPolicy: "isolated" };
    await ok("ADD", attached(own));
    expect(sourcesOf()).toEqual(sources);
    expect(rulesOf(node, 4, "CNI-ISOLATION-STAGE-1 -i brfwd")).toHaveLength(2);
    expect(rulesOf(node, 6, "CNI-ISOLATION-STAGE-1 -i brfwd")).toHaveLength(2);
    expect(rulesOf(node, 4, "CNI-FORWARD")).toEqual([]);
    await ok("CHECK", attached(own));
    node.host.run("ip6tables", "-F");
    expect((await error("CHECK", attached(own))).msg).toContain("ip6tables lacks");
    await ok("DEL", conf(own));
    expect(sourcesOf()).toEqual([]);
  });
});

describe("errors", () => {
  test("a zone that there is none of, whatever its text", async () => {
    for (const firewalldZone of ["nonesuch", "a'; reload", "x".repeat(5000)]) {
      const { msg } = await error("ADD", attached({ firewalldZone }));
      expect(msg).toContain("INVALID_ZONE");
    }
    expect((await error("ADD", attached({ firewalldZone: "a\0b" }))).msg).toBe(
      `firewalldZone: ${JSON.stringify("a\0b")} is not a zone's name`,
    );
    await ok("DEL", attached({ firewalldZone: "nonesuch" }));
  });

  test("an address that is in another zone: firewalld's words; and nothing of the ADD stays", async () => {
    firewalld.command("--zone=public", `--add-source=${sources[1]}`);
    expect((await error("ADD", attached())).msg).toContain(`ZONE_CONFLICT: '${sources[1]}'`);
    expect(sourcesOf()).toEqual([]);
    expect(sourcesOf("public")).toEqual([sources[1]]);
  });

  test("firewalld by name, and it does not run", async () => {
    await firewalld.close();
    expect((await error("ADD", attached({ backend: "firewalld" }))).msg).toContain(
      "org.fedoraproject.FirewallD1",
    );
    expect(await error("STATUS", conf({ backend: "firewalld" }))).toMatchObject({
      code: 50,
      msg: "firewalld does not run, or not on the D-Bus system bus",
    });
    await ok("STATUS", conf());
    await bus.kill();
    expect((await error("ADD", attached({ backend: "firewalld" }))).msg).toContain(
      "D-Bus system bus is not there",
    );
    await ok("DEL", attached({ backend: "firewalld" }));
  });

  test("STATUS is fine while it runs", async () => {
    await ok("STATUS", conf({ backend: "firewalld" }));
    await ok("STATUS", conf({ ingressPolicy: "isolated" }));
  });
});

test("nftables: our table outlives a reload of firewalld", async () => {
  const own = { backend: "nftables", ingressPolicy: "same-bridge" };
  await ok("ADD", attached(own));
  const before = elementsIn(node);
  firewalld.command("--reload");
  firewalld.command("--complete-reload");
  expect(elementsIn(node)).toBe(before);
  await ok("CHECK", attached(own));
  await ok("DEL", conf());
  expect(elementsIn(node)).toBe("");
});

test("iptables: a reload of firewalld loses the rules, CHECK says so, repair puts them back", async () => {
  await ok("ADD", attached({ backend: "iptables" }));
  firewalld.command("--reload");
  const lost = rulesOf(node, 4, "10.203.0.5").length === 0;
  if (lost) expect((await error("CHECK", attached({ backend: "iptables" }))).msg).toContain("lacks");
  await ok("CHECK", { ...attached({ backend: "iptables" }), "tscni/repair": true });
  await ok("DEL", conf());
  expect(rulesOf(node, 4, "10.203.0.5")).toEqual([]);
});
