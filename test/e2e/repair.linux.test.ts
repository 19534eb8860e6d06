import { mkdirSync } from "node:fs";
import {
  addAddress,
  ip,
  makeLan,
  startBus,
  startFirewalld,
  type TestBus,
  type TestFirewalld,
  type TestNamespace,
} from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ChainLab, makeChainLab, ports } from "../interop/chain.ts";
import { ask, connect, serveIn, trafficProblem } from "./traffic.ts";

const [tcp, udp] = ports;

const chain = (backend: string) => [
  {
    type: "bridge",
    bridge: "brrepair",
    isDefaultGateway: true,
    ipMasq: true,
    ipMasqBackend: backend,
    ipam: {
      type: "host-local",
      dataDir: "leases",
      ranges: [[{ subnet: "10.95.0.0/24" }], [{ subnet: "fd95::/64" }]],
    },
  },
  { type: "portmap", backend, capabilities: { portMappings: true } },
  { type: "firewall", backend },
];

let backend: string;
let lab: ChainLab;
let lan: TestNamespace;
let servers: { close(): void }[] = [];

async function start(wanted: string, skip: (note: string) => never): Promise<void> {
  backend = wanted;
  const problem = trafficProblem();
  if (problem) skip(problem);
  mkdirSync("/var/lib/cni", { recursive: true });
  lab = makeChainLab(`repair-${backend}`, [], chain(backend), "1.1.0");
  const { host } = lab.node;
  // Until an interface's link-local address is settled, the kernel asks for no neighbour of what it forwards.
  host.run("sysctl", "-w", "net.ipv6.conf.default.accept_dad=0");
  lan = makeLan(lab.node, "192.0.2.9/24", "2001:db8::9/64");
  host.run("sysctl", "-w", "net.ipv6.conf.default.accept_dad=1");
  addAddress(host, "eth0", "192.0.2.1/24");
  addAddress(host, "eth0", "2001:db8::1/64");
  if (backend === "iptables") closeForwarding();
  lab.cnitool("ours", "add");
  servers = [await serveIn(lab.container, "box", [80, 53]), await serveIn(lan, "lan", [7000])];
}

/**
 * Nothing is forwarded that nobody lets through, as Docker has it. What comes in the firewall plugin leaves to the
 * machine's owner.
 */
function closeForwarding(): void {
  for (const tool of ["iptables", "ip6tables"]) {
    lab.node.host.run(tool, "-P", "FORWARD", "DROP");
    lab.node.host.run(tool, "-A", "FORWARD", "-o", "brrepair", "-j", "ACCEPT");
  }
}

afterEach(() => {
  for (const server of servers) server.close();
  servers = [];
  lab?.close();
});

/** New connections, from outside and to outside, in both families, and what each is answered. */
const connections: [answer: string, ask: () => string][] = [
  ["box 192.0.2.9", () => ask(lan, "192.0.2.1", tcp.hostPort)],
  ["box 2001:db8::9", () => ask(lan, "2001:db8::1", tcp.hostPort)],
  ["box 192.0.2.9", () => ask(lan, "192.0.2.1", udp.hostPort, { udp: true })],
  ["lan 192.0.2.1", () => ask(lab.container, "192.0.2.9", 7000)],
  ["lan 2001:db8::1", () => ask(lab.container, "2001:db8::9", 7000)],
];
const traffic = () => connections.map(([, ask]) => ask());
const whole = connections.map(([answer]) => answer);
const isBroken = () => connections.some(([answer, ask]) => ask() !== answer);

/** All that there is; of nftables, unless the backend is that, what iptables shows better, and firewalld has its own. */
const rules = () =>
  lab
    .traces()
    .filter((line) => backend === "nftables" || !line.startsWith("nft "))
    .toSorted();

/** Loses the rules and repairs them, and looks at all that must and must not change. */
async function loseAndRepair(lose: () => void): Promise<string> {
  const { container } = lab;
  const kept = connect(lan, "192.0.2.1", tcp.hostPort);
  expect(await kept.say("before")).toBe("box 192.0.2.9");
  expect(traffic()).toEqual(whole);
  expect(lab.cnitool("ours", "repair")).toBe("");
  const [before, state] = [ip(container, "addr"), rules()];

  lose();
  expect(() => lab.cnitool("ours", "check")).toThrow(/missing|is not there/);
  expect(isBroken()).toBe(true);

  const said = lab.cnitool("ours", "repair");
  lab.cnitool("ours", "check");
  expect(lab.cnitool("ours", "repair")).toBe("");
  expect(traffic()).toEqual(whole);
  expect(ip(container, "addr")).toEqual(before);
  expect(await kept.say("after")).toBe("box 192.0.2.9");
  expect(rules()).toEqual(state);
  kept.close();
  return said;
}

describe("cnitool repair, iptables", () => {
  beforeEach(({ skip }) => start("iptables", skip));

  const losses: [string, string[]][] = [
    ["nat flushed", ["-t nat -F"]],
    ["nat flushed and its chains removed", ["-t nat -F", "-t nat -X"]],
    [
      "nat and filter flushed, chains removed",
      ["-t nat -F", "-t nat -X", "-F", "-X", "-A FORWARD -o brrepair -j ACCEPT"],
    ],
    ["one rule deleted", ["-t nat -D CNI-HOSTPORT-DNAT 1"]],
  ];
  test.each(losses)("%s", async (_, commands) => {
    const said = await loseAndRepair(() => {
      for (const tool of ["iptables", "ip6tables"])
        for (const command of commands) lab.node.host.run(tool, ...command.split(" "));
    });
    expect(said).toMatch(/portmap repaired: /);
  });

  test("what is deleted after a repair leaves nothing", () => {
    const empty = () => lab.traces().filter((line) => /10\.95\.0\.[2-9]|fd95::[2-9]|18080|CNI-DN/.test(line));
    for (const tool of ["iptables", "ip6tables"]) lab.node.host.run(tool, "-t", "nat", "-F");
    lab.cnitool("ours", "repair");
    expect(empty()).not.toEqual([]);
    lab.cnitool("ours", "del");
    expect(empty()).toEqual([]);
  });
});

describe("cnitool repair, nftables", () => {
  beforeEach(({ skip }) => start("nftables", skip));

  const tables = () =>
    lab.node.host
      .run("nft", "list", "tables")
      .split("\n")
      .filter((line) => line.includes(" tscni_"));

  test.each(["flush", "delete"])("every table of ours: %s", async (verb) => {
    const said = await loseAndRepair(() => {
      for (const table of tables()) lab.node.host.run("nft", verb, ...table.split(" "));
    });
    expect(said).toMatch(/portmap repaired: /);
    expect(said).toMatch(/bridge repaired: /);
  });

  test("the whole ruleset flushed", async () => {
    await loseAndRepair(() => void lab.node.host.run("nft", "flush", "ruleset"));
  });
});

describe("a firewalld reload", () => {
  let bus: TestBus | undefined;
  let firewalld: TestFirewalld | undefined;
  afterEach(async () => {
    await firewalld?.close();
    await bus?.close();
  });

  const prepare = async (wanted: string, skip: (note: string) => never): Promise<TestFirewalld> => {
    await start(wanted, skip);
    bus = await startBus();
    if (bus === undefined) return skip("no dbus-daemon (dbus-daemon)");
    firewalld = await startFirewalld(bus, lab.node.host);
    if (firewalld === undefined) return skip("no firewalld (firewalld)");
    firewalld.command("--set-default-zone=trusted");
    return firewalld;
  };

  test("leaves our nftables tables alone", async ({ skip }) => {
    const { command } = await prepare("nftables", skip);
    expect(traffic()).toEqual(whole);
    command("--reload");
    expect(traffic()).toEqual(whole);
    expect(lab.cnitool("ours", "check")).toBe("");
  });

  test("takes iptables' rules, and repair puts them back", async ({ skip }) => {
    const { command } = await prepare("iptables", skip);
    // So does its start.
    closeForwarding();
    lab.cnitool("ours", "repair");
    await loseAndRepair(() => {
      command("--complete-reload");
      closeForwarding();
    });
  });
});
