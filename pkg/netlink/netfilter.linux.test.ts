import { openNamespace } from "@tscni/ns";
import { makeNamespace, type TestNamespace } from "@tscni/test-support";
import { expect, onTestFinished, test } from "vitest";
import { deleteConnections, listConnections } from "./conntrack.ts";
import { type Netlink, openNetfilter } from "./netlink.ts";
import {
  addNftElements,
  countNftRules,
  getNftElement,
  hasNftChain,
  listNftElements,
  listNftRules,
} from "./nftables.ts";
import { ipOf } from "./testing.ts";

function newPlace(): { ns: TestNamespace; netlink: Netlink } {
  const ns = makeNamespace();
  using inside = openNamespace(ns.path);
  const netlink = inside.enter(openNetfilter);
  onTestFinished(() => {
    netlink.close();
    ns.close();
  });
  return { ns, netlink };
}

const udp = 17;
const hasConntrack = Bun.which("conntrack") !== null;
const skipReason = "needs conntrack (Debian: conntrack)";

function insert(ns: TestNamespace, protocol: string, [source, destination]: string[], port: number): void {
  const state = protocol === "tcp" ? ["--state", "SYN_SENT"] : [];
  const ports = [
    "--sport",
    "4000",
    "--dport",
    `${port}`,
    "--reply-port-src",
    `${port}`,
    "--reply-port-dst",
    "4000",
  ];
  const flow = ["-s", source!, "-d", destination!, "-r", destination!, "-q", source!];
  ns.run("conntrack", "-I", "-p", protocol, ...flow, ...ports, ...state, "--timeout", "100");
}

const left = ({ ns }: { ns: TestNamespace }): number =>
  ["ipv4", "ipv6"]
    .flatMap((family) => ns.run("conntrack", "-L", "-f", family).trim().split("\n"))
    .filter(Boolean).length;

test.skipIf(!hasConntrack)(
  `connections are found by family, protocol and port, and deleted alone${hasConntrack ? "" : `: ${skipReason}`}`,
  () => {
    const place = newPlace();
    const { ns, netlink } = place;
    insert(ns, "udp", ["10.1.0.1", "10.1.0.2"], 53);
    insert(ns, "udp", ["10.1.0.1", "10.1.0.2"], 54);
    insert(ns, "tcp", ["10.1.0.1", "10.1.0.2"], 53);
    insert(ns, "udp", ["fd01::1", "fd01::2"], 53);

    const four = listConnections(netlink, 4, udp, 53);
    expect(four.map(({ original, reply }) => ({ original, reply }))).toEqual([
      {
        original: {
          source: ipOf("10.1.0.1"),
          destination: ipOf("10.1.0.2"),
          sourcePort: 4000,
          destinationPort: 53,
        },
        reply: {
          source: ipOf("10.1.0.2"),
          destination: ipOf("10.1.0.1"),
          sourcePort: 53,
          destinationPort: 4000,
        },
      },
    ]);
    deleteConnections(netlink, four);
    deleteConnections(netlink, four); // gone already: no error
    expect(listConnections(netlink, 4, udp, 53)).toEqual([]);
    expect(left(place)).toBe(3);

    deleteConnections(netlink, listConnections(netlink, 6, udp, 53));
    expect(left(place)).toBe(2);
    expect(listConnections(netlink, 4, udp, 55)).toEqual([]);
  },
);

test("chains and rules of nftables are seen without nft", () => {
  const { ns, netlink } = newPlace();
  expect(hasNftChain(netlink, "inet", "t", "c")).toBe(false);
  expect(countNftRules(netlink, "inet", "t", "c")).toBe(0);
  ns.run("nft", "add table inet t; add chain inet t c; add rule inet t c accept; add rule inet t c drop");
  ns.run("nft", "add chain inet t d; add rule inet t d accept; add table ip6 t; add chain ip6 t six");
  expect(hasNftChain(netlink, "inet", "t", "c")).toBe(true);
  expect(hasNftChain(netlink, "inet", "t", "six")).toBe(false);
  expect(hasNftChain(netlink, "ip6", "t", "six")).toBe(true);
  expect(countNftRules(netlink, "inet", "t", "c")).toBe(2);
  expect(countNftRules(netlink, "ip6", "t", "six")).toBe(0);
});

test("rules' handles and comments, elements' owners and targets", () => {
  const { ns, netlink } = newPlace();
  const key = Uint8Array.of(10, 1, 0, 5);
  expect(getNftElement(netlink, "inet", "t", "m", key)).toBeUndefined();
  expect([listNftElements(netlink, "inet", "t", "m"), listNftRules(netlink, "inet", "t", "c")]).toEqual([
    [],
    [],
  ]);
  ns.run(
    "nft",
    `add table inet t; add chain inet t c; add rule inet t c accept comment "a b"; add rule inet t c drop;
     add map inet t m { type ipv4_addr : verdict; }; add map inet t n { type inet_service : ipv4_addr; };
     add element inet t m { 10.1.0.5 comment "owner" : goto c }; add element inet t n { 80 : 10.1.0.6 }`,
  );
  const rules = listNftRules(netlink, "inet", "t", "c");
  expect(rules.map(({ comment }) => comment)).toEqual(["a b", undefined]);
  ns.run("nft", "delete", "rule", "inet", "t", "c", "handle", `${rules[0]!.handle}`);
  expect(listNftRules(netlink, "inet", "t", "c")).toEqual([rules[1]]);
  const found = { key, comment: "owner", chain: "c", value: undefined };
  expect(getNftElement(netlink, "inet", "t", "m", key)).toEqual(found);
  expect(getNftElement(netlink, "inet", "t", "m", Uint8Array.of(10, 1, 0, 6))).toBeUndefined();
  expect(listNftElements(netlink, "inet", "t", "m")).toEqual([found]);
  expect(listNftElements(netlink, "inet", "t", "n")).toEqual([
    { key: Uint8Array.of(0, 80), comment: undefined, chain: undefined, value: Uint8Array.of(10, 1, 0, 6) },
  ]);
});

test("elements are added as nft adds them, all or none", () => {
  const { ns, netlink } = newPlace();
  const tables = (name: string) =>
    `add table inet ${name}; add chain inet ${name} c; add map inet ${name} m { type ipv4_addr : verdict; };
     add set inet ${name} pairs { type ifname . ether_addr; }; add set inet ${name} names { type ifname; };
     add map inet ${name} ports { type inet_proto . inet_service : ipv4_addr . inet_service; };`;
  ns.run("nft", `${tables("ours")} ${tables("theirs")}`);
  const name = new TextEncoder().encode("veth0123456789a");
  const padded = (bytes: Iterable<number>, length: number) =>
    Uint8Array.from({ length }, (_, i) => [...bytes][i] ?? 0);
  const comment = "x".repeat(127);
  addNftElements(netlink, "inet", "ours", [
    { set: "m", key: Uint8Array.of(10, 1, 0, 5), goTo: "c", comment: "net: a, if: eth0" },
    { set: "names", key: padded(name, 16), comment },
    { set: "pairs", key: padded([...padded(name, 16), 2, 0, 0, 0, 0, 1], 24) },
    {
      set: "ports",
      key: Uint8Array.of(6, 0, 0, 0, 31, 144, 0, 0),
      value: Uint8Array.of(10, 1, 0, 5, 0, 80, 0, 0),
    },
  ]);
  ns.run(
    "nft",
    `add element inet theirs m { 10.1.0.5 comment "net: a, if: eth0" : goto c };
     add element inet theirs names { "veth0123456789a" comment "${comment}" };
     add element inet theirs pairs { "veth0123456789a" . 02:00:00:00:00:01 };
     add element inet theirs ports { tcp . 8080 : 10.1.0.5 . 80 }`,
  );
  const listed = (table: string) => ns.run("nft", "list", "table", "inet", table).replace(table, "");
  expect(listed("ours")).toBe(listed("theirs"));
  for (const set of ["m", "names", "pairs", "ports"])
    expect(listNftElements(netlink, "inet", "ours", set)).toEqual(
      listNftElements(netlink, "inet", "theirs", set),
    );

  const again = { set: "m", key: Uint8Array.of(10, 1, 0, 5), goTo: "c" };
  addNftElements(netlink, "inet", "ours", [again]);
  addNftElements(netlink, "inet", "ours", []);
  const before = listed("ours");
  expect(() => addNftElements(netlink, "inet", "ours", [again], { created: true })).toThrow(/EEXIST/);
  const good = { set: "m", key: Uint8Array.of(10, 1, 0, 6), goTo: "c" };
  for (const [bad, code] of [
    [{ ...good, key: Uint8Array.of(10, 1, 0, 7), goTo: "nonesuch" }, "ENOENT"],
    [{ ...good, set: "nonesuch" }, "ENOENT"],
    [{ set: "m", key: Uint8Array.of(1, 2, 3), goTo: "c" }, "EINVAL"],
  ] as const)
    expect(() => addNftElements(netlink, "inet", "ours", [good, bad])).toThrow(
      expect.objectContaining({ code }),
    );
  expect(() => addNftElements(netlink, "inet", "nonesuch", [good])).toThrow(/ENOENT/);
  expect(listed("ours")).toBe(before);
});
