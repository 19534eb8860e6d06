import { mkdirSync } from "node:fs";
import { goBin } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ChainLab, makeChainLab, type Tool } from "./chain.ts";

const v4 = ["10.94.0.0/24"];
const dual = [...v4, "fd94::/64"];

const bridge = (own: object, subnets: string[]) => ({
  type: "bridge",
  bridge: "brchain",
  isGateway: true,
  hairpinMode: true,
  ...own,
  ipam: { type: "host-local", dataDir: "leases", ranges: subnets.map((subnet) => [{ subnet }]) },
});
const portmap = (own: object) => ({ type: "portmap", capabilities: { portMappings: true }, ...own });
const firewall = (own: object = {}) => ({ type: "firewall", backend: "iptables", ...own });
const tuning = { type: "tuning", sysctl: { "net.ipv4.conf.IFNAME.rp_filter": "0" }, mtu: 1400 };
const bandwidth = {
  type: "bandwidth",
  ingressRate: 12_345_678,
  ingressBurst: 765_432,
  egressRate: 987_654,
  egressBurst: 123_456,
};
const masq = (backend: string) => ({ ipMasq: true, ipMasqBackend: backend });

/** Whether Go's plugins can take away what ours made: not the elements of our maps and sets. */
interface Case {
  name: string;
  plugins: object[];
  goKnowsOurs: boolean;
  version?: string;
}

const cases: Case[] = [
  { name: "plain", plugins: [bridge({}, v4)], goKnowsOurs: true },
  {
    name: "iptables",
    plugins: [bridge(masq("iptables"), v4), portmap({ backend: "iptables" }), firewall(), tuning],
    goKnowsOurs: true,
  },
  {
    name: "iptables, dual stack, as Podman has it",
    plugins: [bridge(masq("iptables"), dual), portmap({ backend: "iptables" }), firewall(), tuning],
    goKnowsOurs: true,
    version: "0.4.0",
  },
  {
    name: "portmap alone without masquerading",
    plugins: [bridge({}, dual), portmap({ backend: "iptables", snat: false })],
    goKnowsOurs: true,
  },
  {
    name: "nftables",
    plugins: [bridge(masq("nftables"), v4), portmap({ backend: "nftables" }), tuning],
    goKnowsOurs: false,
  },
  {
    name: "nftables, dual stack",
    plugins: [bridge(masq("nftables"), dual), portmap({ backend: "nftables" })],
    goKnowsOurs: false,
  },
  {
    // And no sbr: the reference's bridge then misses its routes at CHECK.
    name: "tuning and bandwidth",
    plugins: [bridge({}, dual), { ...tuning, promisc: true, dataDir: "leases" }, bandwidth],
    goKnowsOurs: true,
  },
  { name: "macspoofchk", plugins: [bridge({ macspoofchk: true }, v4)], goKnowsOurs: false },
  ...["open", "same-bridge", "isolated"].map((ingressPolicy) => ({
    name: `ingressPolicy ${ingressPolicy}`,
    plugins: [bridge({}, dual), firewall({ ingressPolicy })],
    goKnowsOurs: true,
  })),
];

let labs = 0;

describe.each(cases)("chain: $name", ({ plugins, goKnowsOurs, version = "1.1.0" }) => {
  let lab: ChainLab;
  beforeEach((test) => {
    const types = plugins.map((plugin) => (plugin as { type: string }).type);
    const go = ["cnitool", "host-local", ...types].map((type) => goBin(type, test));
    mkdirSync("/var/lib/cni", { recursive: true });
    lab = makeChainLab(`chain${++labs}`, go, plugins, version);
  });
  afterEach(() => lab?.close());

  /** What stays of each when it is left to itself: bridges, empty chains and tables that are everybody's. */
  function both(): string[] {
    for (const tool of ["go", "ours"] satisfies Tool[])
      for (const verb of ["add", "check", "del"]) lab.cnitool(tool, verb);
    const left = lab.traces();
    expect(left.filter(ofTheContainer)).toEqual([]);
    return left;
  }

  /** What there is beyond that. Less may be there: GC removes what nobody uses. */
  const since = (before: string[]) => lab.traces().filter((line) => !before.includes(line));

  test("what Go adds we CHECK and DEL, and nothing is left", () => {
    const before = both();
    lab.cnitool("go", "add");
    lab.cnitool("ours", "check");
    lab.cnitool("ours", "del");
    expect(since(before)).toEqual([]);
  });

  test("what we add Go CHECKs and DELs, and nothing is left", () => {
    const before = both();
    lab.cnitool("ours", "add");
    if (goKnowsOurs) lab.cnitool("go", "check");
    lab.cnitool("go", "del");
    // Of our records Go knows nothing; they say what was there, and do nothing.
    if (goKnowsOurs) expect(since(before).filter((line) => !line.startsWith("/run/tscni/"))).toEqual([]);
    // Before 1.1.0 there is no GC: records stay until the next ADD or boot.
    lab.cnitool("ours", "gc");
    expect(since(before).filter((line) => version === "1.1.0" || !line.startsWith("/run/tscni/"))).toEqual(
      [],
    );
  });

  test("what either adds, cnitool gc of ours removes", () => {
    const before = both();
    for (const tool of ["go", "ours"] satisfies Tool[]) {
      lab.cnitool(tool, "add");
      lab.cnitool("ours", "gc");
      expect(since(before), tool).toEqual([]);
    }
  });
});

/** Addresses and ports of the container, its chains, its links, its lease. The gateway's address stays on the bridge. */
const ofTheContainer = (line: string): boolean =>
  /10\.94\.0\.(?!1\b)[1-9]|fd94::(?!1\b)[1-9a-f]|18080|15353|CNI-DN-|CNI-[0-9a-f]{24}|link veth|link bwp|cnitool-/.test(
    line,
  );
