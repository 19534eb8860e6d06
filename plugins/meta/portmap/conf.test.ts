import { decodeConf } from "@tscni/conf";
import { describe, expect, test } from "vitest";
import { conditionsProblem } from "./conditions.ts";
import { PortmapConf } from "./conf.ts";

const parse = (own: object) => decodeConf(PortmapConf, { name: "n", type: "portmap", ...own });
const ports = (...portMappings: object[]) => ({ runtimeConfig: { portMappings } });

test("nothing given: the defaults", () => {
  expect(parse({})).toEqual({
    name: "n",
    type: "portmap",
    snat: true,
    masqAll: false,
    conditionsV4: [],
    conditionsV6: [],
  });
});

test("keys in any case, as containerd sends them; null is absent", () => {
  const conf = parse({
    SNAT: null,
    runtimeConfig: {
      PortMappings: [{ HostPort: 8080, ContainerPort: 80, Protocol: "TCP", HostIP: "" }],
    },
  });
  expect(conf.snat).toBe(true);
  expect(conf.runtimeConfig?.portMappings).toEqual([
    { hostPort: 8080, containerPort: 80, protocol: "TCP", hostIP: "" },
  ]);
});

test("protocol and hostIP may be left out", () => {
  expect(parse(ports({ hostPort: 1, containerPort: 65535 })).runtimeConfig?.portMappings).toEqual([
    { hostPort: 1, containerPort: 65535, protocol: "tcp", hostIP: "" },
  ]);
});

describe("what is refused, with code and message", () => {
  const at = "runtimeConfig.portMappings[0]";
  test.each<[object, number, string]>([
    [{ backend: "ebpf" }, 7, 'backend: unrecognized backend "ebpf": it can be iptables or nftables'],
    [{ backend: 5 }, 6, "backend: 5 is not a string"],
    [{ snat: "yes" }, 6, 'snat: "yes" is not true or false'],
    [{ markMasqBit: 32 }, 7, "markMasqBit: MasqMarkBit must be between 0 and 31, and is 32"],
    [{ markMasqBit: -1 }, 7, "markMasqBit: MasqMarkBit must be between 0 and 31, and is -1"],
    [{ markMasqBit: 1.5 }, 7, "markMasqBit: MasqMarkBit must be between 0 and 31, and is 1.5"],
    [
      { markMasqBit: 13, externalSetMarkChain: "KUBE-MARK-MASQ" },
      7,
      "Cannot specify externalSetMarkChain and markMasqBit",
    ],
    [
      { backend: "nftables", externalSetMarkChain: "KUBE-MARK-MASQ" },
      7,
      "nftables backend was requested but configuration contains iptables-specific options [externalSetMarkChain]",
    ],
    [
      { backend: "iptables", conditionsV4: ["tcp", "sport", "1"], conditionsV6: ["iif", "lo"] },
      7,
      "iptables backend was requested but configuration contains nftables-specific options [conditionsV4 conditionsV6]",
    ],
    [
      { backend: "nftables", conditionsV6: ["!", "-d", "::1"] },
      7,
      "nftables backend was requested but configuration contains iptables-specific options [conditionsV6]",
    ],
    [
      ports({ hostPort: 0, containerPort: 80 }),
      7,
      `${at}.hostPort: Invalid host port number: 0 is not between 1 and 65535`,
    ],
    [
      ports({ hostPort: 65536, containerPort: 80 }),
      7,
      `${at}.hostPort: Invalid host port number: 65536 is not between 1 and 65535`,
    ],
    [
      ports({ hostPort: 80, containerPort: -1 }),
      7,
      `${at}.containerPort: Invalid container port number: -1 is not between 1 and 65535`,
    ],
    [ports({ hostPort: "80", containerPort: 80 }), 6, `${at}.hostPort: "80" is not a number`],
    [ports({ containerPort: 80 }), 6, `${at}.hostPort: missing`],
    [
      ports({ hostPort: 1, containerPort: 1, protocol: "icmp" }),
      7,
      `${at}.protocol: "icmp" is not tcp, udp or sctp`,
    ],
    [
      ports({ hostPort: 1, containerPort: 1, protocol: "tcp -j ACCEPT" }),
      7,
      `${at}.protocol: "tcp -j ACCEPT" is not tcp, udp or sctp`,
    ],
    [
      ports({ hostPort: 1, containerPort: 1, hostIP: "10.0.0.1 accept" }),
      7,
      `${at}.hostIP: "10.0.0.1 accept" is not an IP address`,
    ],
    [
      { externalSetMarkChain: "A\n-F PREROUTING" },
      7,
      'externalSetMarkChain: "A\\n-F PREROUTING" is not a name of an iptables chain',
    ],
    [{ externalSetMarkChain: "" }, 7, 'externalSetMarkChain: "" is not a name of an iptables chain'],
    [
      { conditionsV4: ["-s", "10.0.0.0/8", "-j", "ACCEPT"] },
      7,
      'conditionsV4: ["-s","10.0.0.0/8","-j","ACCEPT"] has -j, which is no condition',
    ],
  ])("%j", (own, code, msg) => {
    expect(() => parse(own)).toThrow(expect.objectContaining({ code, msg }));
  });
});

test("DEL takes any config: what is wrong is told and dropped", () => {
  const ignored: string[] = [];
  const wrong = {
    backend: "ebpf",
    markMasqBit: 99,
    snat: 1,
    conditionsV4: ["a;b"],
    ...ports({ hostPort: 0, containerPort: 1 }),
  };
  const lenient = ({ path }: { path: string }) => ignored.push(path);
  const conf = decodeConf(PortmapConf, { name: "n", type: "portmap", ...wrong }, { lenient });
  expect(conf).toMatchObject({ snat: true, conditionsV4: [], runtimeConfig: { portMappings: [] } });
  expect(ignored.toSorted()).toEqual([
    "backend",
    "conditionsV4",
    "markMasqBit",
    "runtimeConfig.portMappings[0].hostPort",
    "snat",
  ]);
});

describe("conditions", () => {
  test.each([
    [["!", "-d", "192.0.2.0/24"]],
    [["-i", "eth0", "!", "--source", "10.0.0.0/8", "-m", "conntrack", "--ctstate", "NEW"]],
    [["-d192.0.2.1"]],
    [["-m", "comment", "--comment", "with a ; and a #"]],
    [["a"]],
    [["iifname", '"eth0"', "ip", "saddr", "!=", "{", "10.0.0.1,", "10.0.0.2", "}"]],
    [["ip saddr != { 10.0.0.1, 10.0.0.2 }"]],
    [[]],
    [[""]],
  ])("%j are fine", (conditions) => {
    expect(conditionsProblem(conditions)).toBeUndefined();
  });

  test.each([
    ["another target", ["-s", "10.0.0.1", "-j", "ACCEPT"]],
    ["another target, joined", ["-s", "10.0.0.1", "-jACCEPT"]],
    ["another target, long", ["-s", "10.0.0.1", "--jump=ACCEPT"]],
    ["another target, shortened", ["-s", "10.0.0.1", "--jum", "ACCEPT"]],
    ["goto", ["-g", "X"]],
    ["another table", ["-t", "filter"]],
    ["a command", ["!", "-F"]],
    ["a command in a cluster of options", ["-vF"]],
    ["a line", ["-s", "10.0.0.1\n-F PREROUTING"]],
    ["an end of options", ["-s", "10.0.0.1", "--"]],
    ["a command of nft", ["accept; flush ruleset"]],
    ["a line of nft", ["accept\nflush ruleset"]],
    ["another line end", ["accept\u2028flush ruleset"]],
    ["a comment that hides the rest of the rule", ["accept #"]],
    ["a block", ["iif lo } chain x {"]],
    ["a brace", ["ip", "saddr", "{", "10.0.0.1"]],
    ["a text", ['iifname "eth0']],
    ["a variable", ["ip saddr $x"]],
    ["a continuation", ["iif lo \\"]],
  ])("%s is refused", (_, conditions) => {
    expect(conditionsProblem(conditions)).toBeDefined();
  });
});
