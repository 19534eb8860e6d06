/**
 * Compares our plugins with the Go reference ones: `bench.ts [--rounds N] [--json] [FILTER]...`, run by
 * scripts/bench in a network and mount namespace of its own. Whole processes, started directly, one of ours and
 * one of theirs in turn; medians.
 */
import { parseArgs } from "node:util";
import { run } from "@tscni/test-support";
import { attachments, crowd, manyAtOnce, single } from "./lib/bench/attach.ts";
import { chain } from "./lib/bench/chain.ts";
import { type Curve, curve, type Point } from "./lib/bench/curve.ts";
import { gcOfMany, stale } from "./lib/bench/gc.ts";
import { closeLab, configFile, containerOf, networkOf, sides } from "./lib/bench/lab.ts";
import { measure, type Row, type Scenario, warmUp } from "./lib/bench/measure.ts";
import { behindBridge, limited, tuned } from "./lib/bench/meta.ts";
import { peakMemory, sizeOf } from "./lib/bench/sizes.ts";
import { warm } from "./lib/bench/warm.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string", default: "60" }, json: { type: "boolean", default: false } },
});
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds ${values.rounds}: not a whole number`);

const [v4, v6] = ["10.98.0.0/16", "fd98::/64"];
const metaLimits = { ADD: 1.2, CHECK: undefined, DEL: undefined };
const bridgeLimits = { ADD: 0.7, CHECK: 0.75, DEL: 1 };
const mainLimits = { ADD: 0.75, CHECK: undefined, DEL: undefined };
/** By name, so that a filter costs nothing for what it leaves out. */
const scenarios: [name: string, make: () => Scenario][] = [
  [
    "plugin start (VERSION)",
    () =>
      single("plugin start (VERSION)", undefined, () => ({
        plugin: "bridge",
        command: "VERSION",
        conf: "/dev/null",
      })),
  ],
  ["bridge + host-local", () => attachments("bridge + host-local", "one", [v4], bridgeLimits)],
  ["dual stack", () => attachments("dual stack", "dual", [v4, v6], bridgeLimits)],
  ["host-local alone, ADD", hostLocal],
  ["loopback alone, ADD", loopback],
  ["static alone, ADD", staticAlone],
  [
    "ptp + host-local",
    () => attachments("ptp + host-local", "ptp", ["10.105.0.0/16"], mainLimits, { type: "ptp" }),
  ],
  ["macvlan + host-local", macvlan],
  [
    "tap + host-local",
    () => attachments("tap + host-local", "tap", ["10.107.0.0/16"], mainLimits, { type: "tap", bridge: "" }),
  ],
  ["tuning", () => behindBridge("tuning", tuned, metaLimits, "10.102.0.0/16")],
  ["bandwidth", () => behindBridge("bandwidth", limited, metaLimits, "10.103.0.0/16")],
  ["sbr", () => behindBridge("sbr", () => ({}), metaLimits, "10.104.0.0/16")],
  [`${crowd} containers at once`, manyAtOnce],
  ["bridge + portmap, iptables", () => chain("iptables", { ADD: 0.4, CHECK: undefined, DEL: 0.4 })],
  ["bridge + portmap, nftables", () => chain("nftables", { ADD: 0.15, CHECK: undefined, DEL: 0.4 })],
  [`cnitool gc of ${stale}, iptables`, () => gcOfMany("iptables", 0.1)],
  [`cnitool gc of ${stale}, nftables`, () => gcOfMany("nftables", 0.1)],
];
/** Programs that stay, each measuring itself. */
const programs: [name: string, make: () => Row[]][] = [
  ["bridge + host-local, in process", () => warm({ ADD: 0.35, DEL: undefined })],
];
const curves: [name: string, make: () => Curve][] = [
  ["curve, iptables", () => curve("iptables", undefined)],
  ["curve, nftables", () => curve("nftables", 1.2)],
];

function hostLocal(): Scenario {
  const confs = new Map(sides.map((side) => [side, configFile(networkOf(side, "alone", [v4]))]));
  return single("host-local alone, ADD", 2.2, (side, round) => ({
    plugin: "host-local",
    command: "ADD",
    conf: confs.get(side)!,
    container: `h${round}`,
  }));
}

function loopback(): Scenario {
  const conf = configFile({ cniVersion: "1.1.0", name: "lo", type: "loopback" });
  return single("loopback alone, ADD", 2.2, (side, round) => ({
    plugin: "loopback",
    command: "ADD",
    conf,
    netns: containerOf(side, round),
  }));
}

function staticAlone(): Scenario {
  const ipam = { type: "static", addresses: [{ address: "10.98.0.2/24", gateway: "10.98.0.1" }] };
  const conf = configFile({ cniVersion: "1.1.0", name: "fixed", type: "static", ipam });
  return single("static alone, ADD", 2.2, () => ({ plugin: "static", command: "ADD", conf, container: "s" }));
}

function macvlan(): Scenario {
  run("ip", "link", "add", "benchmaster", "up", "type", "veth", "peer", "name", "benchother");
  run("ip", "link", "set", "benchother", "up");
  const own = { type: "macvlan", master: "benchmaster" };
  return attachments("macvlan + host-local", "macvlan", ["10.106.0.0/16"], mainLimits, own);
}

const cell = (value: string, width = 9) => value.padStart(width);
function line({ name, ours, go, limit }: Row, digits: number): string {
  const ratio = ours / go;
  const verdict = limit === undefined ? "" : ratio <= limit ? "ok" : "over";
  const numbers = [ours.toFixed(digits), go.toFixed(digits), ratio.toFixed(2), limit?.toFixed(2) ?? ""];
  return `${name.padEnd(34)}${numbers.map((text) => cell(text)).join("")}  ${verdict}`.trimEnd();
}

function curveText({ backend, ours, go, growth, limit }: Curve): string {
  const cells = (point: Point | undefined, step: "ADD" | "DEL") =>
    cell(point ? `${point.extrapolated ? "~" : ""}${point[step].toFixed(point.extrapolated ? 0 : 1)}` : "");
  const rows = ours.map((point, i) => {
    const numbers = [cells(point, "ADD"), cells(go[i], "ADD"), cells(point, "DEL"), cells(go[i], "DEL")];
    return `${`  ${point.attached}`.padEnd(34)}${numbers.join("")}`;
  });
  const verdict = limit === undefined ? "" : `, limit ${limit}: ${growth <= limit ? "ok" : "over"}`;
  const heading = ["ours ADD", "Go ADD", "ours DEL", "Go DEL"].map((text) => cell(text)).join("");
  return [
    `\n${`the next, with so many, ${backend}`.padEnd(34)}${heading}  (ms; ~ by extrapolation)`,
    ...rows,
    `  our last ADD is ${growth.toFixed(2)} times the first${verdict}`,
  ].join("\n");
}

function main(): void {
  const wanted = ([name]: [string, unknown]) =>
    positionals.length === 0 || positionals.some((p) => name.includes(p));
  for (const side of sides) containerOf(side, Math.max(rounds + warmUp, crowd, stale));
  Bun.sleepSync(500);

  const print = (text: string) => values.json || console.log(text);
  print(`medians of ${rounds} rounds in turn; Go plugins v1.9.1\n`);
  print(`${"".padEnd(34)}${["ours ms", "Go ms", "ratio", "limit"].map((text) => cell(text)).join("")}`);
  const times = scenarios.filter(wanted).flatMap(([, make]) => {
    const rows = measure(make(), rounds);
    for (const row of rows) print(line(row, 2));
    return rows;
  });
  for (const [, run] of programs.filter(wanted)) {
    const rows = run();
    for (const row of rows) print(line(row, 2));
    times.push(...rows);
  }
  const drawn = curves.filter(wanted).map(([, make]) => {
    const made = make();
    print(curveText(made));
    return made;
  });
  const sizes: Row[] = [];
  if (positionals.length === 0) {
    const row = (name: string, of: (side: (typeof sides)[number]) => number) =>
      sizes.push({ name, limit: undefined, ours: of(sides[0]!), go: of(sides[1]!) });
    row("peak memory of a bridge ADD, MB", peakMemory);
    row("size on disk, MB", sizeOf);
    print("");
    for (const size of sizes) print(line(size, 0));
  }
  if (values.json) console.log(JSON.stringify({ rounds, times, curves: drawn, sizes }, null, 2));
  const over =
    times.some(({ ours, go, limit }) => limit !== undefined && ours / go > limit) ||
    drawn.some(({ growth, limit }) => limit !== undefined && growth > limit);
  if (over) process.exitCode = 1;
}

try {
  main();
} finally {
  closeLab();
}
