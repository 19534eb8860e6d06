import { dirname } from "node:path";
import { type Conf, goBin, ip, makeNode, type TestNamespace, type TestNode } from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
/** The folder of the Go plugins. */
let go: string;
let c: TestNamespace;
beforeEach((test) => {
  node = makeNode();
  go = dirname(goBin("bridge", test));
  c = node.container();
});
afterEach(() => node.close());

const configs: [name: string, own: object, subnets: string[]][] = [
  ["plain", {}, ["10.88.0.0/24"]],
  ["dual stack gateway", { isGateway: true }, ["10.88.0.0/24", "fd88::/64"]],
  [
    "default gateway",
    { isDefaultGateway: true, mtu: 1400, hairpinMode: true },
    ["10.88.0.0/24", "fd88::/64"],
  ],
  ["layer 2", {}, []],
];
const cases = configs.flatMap(([name, own, subnets]) =>
  specVersions
    // Without an address there is no result in the oldest shape.
    .filter((cniVersion) => subnets.length > 0 || atLeast(cniVersion, "0.3.0"))
    .map((cniVersion) => [name, cniVersion, own, subnets] as const),
);

/** Of those that ADD sets; ours also sets accept_ra and ndisc_notify, see the bridge's README. */
const sysctls = [
  "ipv4.conf.eth0.arp_notify",
  "ipv6.conf.eth0.accept_dad",
  "ipv6.conf.eth0.keep_addr_on_down",
];

/** What a container has of the network, without what differs from run to run, and nodad, which only we set. */
function containerState(): object {
  const pick = (entry: Record<string, unknown>, keys: string[]) =>
    keys.map((key) => `${key} ${entry[key]}`).join(" ");
  const [link] = ip(c, "addr", "show", "dev", "eth0");
  return {
    link: pick(link, ["mtu", "operstate"]),
    addresses: link.addr_info
      .filter((entry: { scope: string }) => entry.scope === "global")
      .map((entry: Record<string, unknown>) => pick(entry, ["local", "prefixlen", "broadcast"])),
    routes: ["-4", "-6"].flatMap((family) =>
      ip(c, family, "route", "show", "dev", "eth0")
        .filter((route) => !route.dst.startsWith("fe80"))
        .map((route) => pick(route, ["dst", "gateway", "scope", "metric", "protocol", "prefsrc"])),
    ),
    sysctls: sysctls.map((key) => c.run("sysctl", `net.${key}`)),
  };
}

/** The bridge's addresses and the port's options. */
function hostSide(): object {
  const [port] = ip(node.host, "link", "show", "master", "brtest");
  const options = port.linkinfo.info_slave_data;
  return {
    addresses: node.state().addresses,
    port: { mtu: port.mtu, hairpin: options.hairpin, isolated: options.isolated, state: options.state },
    forwarding: node.host.run("sysctl", "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"),
  };
}

/** host-local's files without those that Go does not know. */
const files = () =>
  Object.fromEntries(Object.entries(node.state().files).filter(([path]) => !/[/]\.tscni-[^/]*$/.test(path)));

describe("with the Go plugins", () => {
  describe.each(cases)("%s, cniVersion %s", (_, cniVersion, own, subnets) => {
    const confOf = (prevResult?: object): Conf =>
      node.bridgeConf({ cniVersion, ...own, prevResult }, subnets);
    const canCheck = atLeast(cniVersion, "0.4.0");

    test("what Go adds we CHECK and DEL, and nothing is left", async () => {
      const conf = confOf(await node.ok("ADD", confOf(), { netns: c, bin: go }));
      if (canCheck) await node.ok("CHECK", conf, { netns: c });
      await node.ok("DEL", conf, { netns: c });
      expect([node.veths(), node.leases()]).toEqual([[], []]);
    });

    test("what we add Go CHECKs and DELs, and nothing is left", async () => {
      const conf = confOf(await node.ok("ADD", confOf(), { netns: c }));
      // Go's CHECK asks for IPAM even where there is none (contracts.md F5).
      if (canCheck && subnets.length > 0) await node.ok("CHECK", conf, { netns: c, bin: go });
      await node.ok("DEL", conf, { netns: c, bin: go });
      expect([node.veths(), node.leases()]).toEqual([[], []]);
    });

    test("the same input gives the same result, container and files", async () => {
      const theirs = await node.ok("ADD", confOf(), { netns: c, bin: go });
      const state = () => ({
        host: hostSide(),
        container: subnets.length > 0 ? containerState() : {},
        files: files(),
      });
      const theirState = state();
      await node.ok("DEL", confOf(), { netns: c, bin: go });
      node.host.run("ip", "link", "del", "brtest");
      node.resetLeases();
      const ours = await node.ok("ADD", confOf(), { netns: c });
      expect(normalised(ours)).toEqual(normalised(theirs));
      expect(state()).toEqual(theirState);
    });
  });
});

test("containers that Go and we attached share a bridge", async () => {
  const conf = node.bridgeConf({ isDefaultGateway: true });
  const [second, third] = [node.container(), node.container()];
  await node.ok("ADD", conf, { netns: c });
  await node.ok("ADD", conf, { netns: second, id: "c2" });
  await node.ok("ADD", conf, { netns: third, id: "c3", bin: go });
  expect(node.leases()).toEqual(["10.88.0.2", "10.88.0.3", "10.88.0.4", "fd88::2", "fd88::3", "fd88::4"]);
  for (const address of ["10.88.0.2", "fd88::2", "10.88.0.4", "10.88.0.1", "fd88::1"])
    second.run("ping", "-c1", "-W1", address);
});

/** A result without what is random, and without the MTUs that only we report. */
function normalised(result: { interfaces?: { name: string; mac?: string; mtu?: number }[] }): object {
  const interfaces = result.interfaces?.map(({ mtu: _, ...rest }) => ({
    ...rest,
    name: rest.name.replace(/^veth[0-9a-f]+$/, "veth"),
    mac: rest.mac?.length,
  }));
  return { ...result, ...(interfaces ? { interfaces } : {}) };
}
