import { rmSync } from "node:fs";
import {
  addAddress,
  ip,
  makeLan,
  makeNode,
  pings,
  type TestNamespace,
  type TestNode,
} from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { confWith, firewallError, okFirewall } from "./testing.ts";

/*
 * Two bridges, two containers on the first and one on the second, and a network that the host is on. What the rules
 * are for is what packets do.
 */

const env = { DBUS_SYSTEM_BUS_ADDRESS: "unix:path=/nonexistent" };

interface Attached {
  ns: TestNamespace;
  /** One of each family. */
  addresses: string[];
  id: string;
  network: string;
  // biome-ignore lint/suspicious/noExplicitAny: the bridge plugin's result
  result: any;
}

let node: TestNode;
let lan: TestNamespace;
const lanAddresses = ["192.0.2.2", "2001:db8:2::2"];
beforeEach(() => {
  node = makeNode();
  lan = makeLan(node, "192.0.2.2/24", "2001:db8:2::2/64");
  for (const address of ["192.0.2.1/24", "2001:db8:2::1/64"]) addAddress(node.host, "eth0", address);
  lan.run("ip", "route", "add", "10.202.0.0/16", "via", "192.0.2.1");
  lan.run("ip", "route", "add", "fd02::/16", "via", "2001:db8:2::1");
  // IPv6 answers once the link-local addresses are past their detection of duplicates.
  for (let i = 0; i < 30 && !(pings(node.host, lanAddresses[1]!) && pings(lan, "2001:db8:2::1")); i++);
});
afterEach(() => {
  node.close();
  for (const name of ["fwa", "fwb"]) rmSync(`/run/tscni/firewall/${name}`, { recursive: true, force: true });
});

/** A container on bridge number 1 or 2. */
async function attach(id: string, bridge: 1 | 2): Promise<Attached> {
  const ns = node.container();
  const network = bridge === 1 ? "fwa" : "fwb";
  const subnets = [`10.202.${bridge}.0/24`, `fd02:${bridge}::/64`];
  const conf = node.conf(
    "bridge",
    { name: network, bridge: `br${network}`, isDefaultGateway: true },
    subnets,
  );
  const result = await node.ok("ADD", conf, { netns: ns, id });
  const addresses = result.ips.map(({ address }: { address: string }) => address.split("/")[0]);
  return { ns, id, network, addresses, result };
}

const firewallConf = ({ network, result }: Attached, more: object) =>
  confWith({ name: network, prevResult: result, ...more });
const protect = (verb: string, each: Attached, more: object) =>
  okFirewall(node, verb, firewallConf(each, more), { id: each.id, netns: each.ns, env });

/** Whether pings of both families get through; an answer for one only is an error. */
function reaches(from: TestNamespace, addresses: readonly string[]): boolean {
  const answers = addresses.map((address) => pings(from, address, "-W0.5"));
  if (new Set(answers).size !== 1) throw new Error(`${addresses}: ${answers}`);
  return answers[0]!;
}

/** Has the host refuse what an ADD wants; returns what else its config needs for that. */
function makeImpossible(backend: string): object {
  node.host.run("nft", "add", "table", "inet", "tscni_firewall");
  if (backend === "nftables") {
    node.host.run("nft", "add set inet tscni_firewall containers4 { type inet_service; }");
    return {};
  }
  // A loop of chains.
  for (const chain of ["CNI-FORWARD", "LOOP"]) node.host.run("iptables", "-N", chain);
  node.host.run("iptables", "-A", "LOOP", "-j", "CNI-FORWARD");
  return { iptablesAdminChainName: "LOOP" };
}

describe.each(["iptables", "nftables"])("%s", (backend) => {
  test.each([
    ["same-bridge", true],
    ["isolated", false],
  ])("%s", async (ingressPolicy, withinBridge) => {
    const [a, b, other] = [await attach("a", 1), await attach("b", 1), await attach("other", 2)];
    expect(reaches(a.ns, b.addresses)).toBe(true);
    expect(reaches(a.ns, other.addresses)).toBe(true);
    const own = { backend, ingressPolicy };
    for (const each of [a, b, other]) await protect("ADD", each, own);

    expect(reaches(a.ns, b.addresses), "within the bridge").toBe(withinBridge);
    expect(reaches(a.ns, other.addresses), "to the other bridge").toBe(false);
    expect(reaches(other.ns, a.addresses), "from the other bridge").toBe(false);
    expect(reaches(a.ns, lanAddresses), "out").toBe(true);
    expect(reaches(lan, a.addresses), "in, which other rules may forbid").toBe(true);
    expect(reaches(a.ns, ["10.202.1.1", "fd02:1::1"]), "the gateway").toBe(true);
    for (const each of [a, b, other]) await protect("CHECK", each, own);
    for (const each of [a, b, other]) await protect("DEL", each, own);
    // The reference leaves the rules of a policy, since it can't know who else has it. Ours know in nftables.
    expect(reaches(a.ns, other.addresses)).toBe(backend === "nftables");
  });

  test("a network with the policy open is not kept out", async () => {
    const [a, other] = [await attach("a", 1), await attach("other", 2)];
    await protect("ADD", a, { backend, ingressPolicy: "isolated" });
    await protect("ADD", other, { backend });
    expect(reaches(a.ns, other.addresses)).toBe(true);
    expect(reaches(other.ns, a.addresses)).toBe(true);
    for (const each of [a, other]) await protect("DEL", each, { backend });
  });

  test("isolated: CHECK looks at the port, repair isolates it again, a failed ADD takes it back", async () => {
    const own = { backend, ingressPolicy: "isolated" };
    const a = await attach("a", 1);
    const port = a.result.interfaces[1].name;
    const isolated = () => ip(node.host, "link", "show", "dev", port)[0].linkinfo.info_slave_data.isolated;
    const call = { id: a.id, netns: a.ns, env };
    expect(isolated()).toBe(false);
    await firewallError(node, "ADD", firewallConf(a, { ...own, ...makeImpossible(backend) }), call);
    expect(isolated()).toBe(false);
    node.host.run("nft", "flush", "ruleset");

    await protect("ADD", a, own);
    expect(isolated()).toBe(true);
    await protect("CHECK", a, own);
    node.host.run("bridge", "link", "set", "dev", port, "isolated", "off");
    expect((await firewallError(node, "CHECK", firewallConf(a, own), call)).msg).toBe(
      `the port ${port} of brfwa is not isolated`,
    );
    await protect("CHECK", a, { ...own, "tscni/repair": true });
    expect(isolated()).toBe(true);
    await protect("DEL", a, own);
  });
});

describe("a host whose iptables drops what is forwarded", () => {
  const drop = (policy = "DROP") => {
    for (const name of ["iptables", "ip6tables"]) node.host.run(name, "-P", "FORWARD", policy);
  };

  test("iptables: the container may send and gets its answers, and nothing else", async () => {
    const a = await attach("a", 1);
    drop();
    expect(reaches(a.ns, lanAddresses)).toBe(false);
    await protect("ADD", a, { backend: "iptables" });
    expect(reaches(a.ns, lanAddresses)).toBe(true);
    expect(reaches(lan, a.addresses)).toBe(false);
    node.host.run("iptables", "-A", "CNI-ADMIN", "-d", "192.0.2.2", "-j", "DROP");
    node.host.run("ip6tables", "-A", "CNI-ADMIN", "-d", "2001:db8:2::2", "-j", "DROP");
    expect(reaches(a.ns, lanAddresses), "administrators go first").toBe(false);
    await protect("DEL", a, {});
  });

  test("nftables: what another table drops stays dropped, as the README says", async () => {
    const a = await attach("a", 1);
    drop();
    await protect("ADD", a, { backend: "nftables" });
    expect(reaches(a.ns, lanAddresses)).toBe(false);
    drop("ACCEPT");
    expect(reaches(a.ns, lanAddresses)).toBe(true);
    for (const [family, address] of [
      ["ip", "192.0.2.2"],
      ["ip6", "2001:db8:2::2"],
    ])
      node.host.run(
        "nft",
        "add",
        "rule",
        "inet",
        "tscni_firewall",
        "admin",
        family!,
        "daddr",
        address!,
        "drop",
      );
    expect(reaches(a.ns, lanAddresses), "administrators go first").toBe(false);
    await protect("ADD", await attach("b", 1), { backend: "nftables" });
    expect(reaches(a.ns, lanAddresses), "their rules stay").toBe(false);
    await protect("DEL", a, {});
  });
});
