/**
 * Compares our plugins with the Go reference ones: `bench.ts [--rounds N] [--json] [FILTER]...`, run by
 * scripts/bench in a network and mount namespace of its own. Whole processes, started directly, one of ours and
 * one of theirs in turn; medians.
 */
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { distBin, findGoBin, makeNamespace, type TestNamespace, temporaryFolder } from "@tscni/test-support";
import { type Command, prepare, running, timed, wait } from "./lib/spawn.linux.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string", default: "60" }, json: { type: "boolean", default: false } },
});
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds ${values.rounds}: not a whole number`);
const warmUp = 5;
const crowd = 64;

interface Side {
  name: "ours" | "go";
  bin: string;
}
const goBridge = findGoBin("bridge");
if (goBridge === undefined) throw new Error("no Go plugins: scripts/test installs them where Go is");
const sides: readonly Side[] = [
  { name: "ours", bin: distBin },
  { name: "go", bin: join(goBridge, "..") },
];

const folder = temporaryFolder();
const outputOf = (side: Side) => join(folder.path, `${side.name}.out`);

let files = 0;
/** A file with a config, to be a plugin's stdin. */
function configFile(conf: object): string {
  const path = join(folder.path, `conf${files++}`);
  writeFileSync(path, JSON.stringify(conf));
  return path;
}

interface Target {
  plugin: string;
  command: string;
  conf: string;
  container?: string;
  netns?: string;
  output?: string;
}

/** A plugin's process of one side. */
function processOf(side: Side, { plugin, command, conf, container, netns, output }: Target): Command {
  const env = {
    CNI_COMMAND: command,
    CNI_CONTAINERID: container ?? "bench",
    CNI_NETNS: netns ?? "/run/netns/none",
    CNI_IFNAME: plugin === "loopback" ? "lo" : "eth0",
    CNI_PATH: side.bin,
    PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
  };
  return prepare({ file: join(side.bin, plugin), env, stdin: conf, stdout: output ?? outputOf(side) });
}

/** A network of each side's own. */
function networkOf(side: Side, name: string, ranges: string[]): Record<string, unknown> {
  return {
    cniVersion: "1.1.0",
    name: `${name}-${side.name}`,
    type: "bridge",
    bridge: `${name}${side.name}`,
    isGateway: true,
    ipam: {
      type: "host-local",
      dataDir: join(folder.path, side.name),
      ranges: ranges.map((subnet) => [{ subnet }]),
      routes: ranges.map((subnet) => ({ dst: subnet.includes(":") ? "::/0" : "0.0.0.0/0" })),
    },
  };
}

// Namespaces are made before anything is measured, and go at the end: the kernel takes its time over them.
const pools = new Map<Side, TestNamespace[]>(sides.map((side) => [side, []]));
function namespaceOf(side: Side, i: number): string {
  const pool = pools.get(side)!;
  while (pool.length <= i) pool.push(makeNamespace());
  return pool[i]!.path;
}

interface Row {
  name: string;
  limit: number | undefined;
  ours: number;
  go: number;
}
type Samples = Record<string, Record<Side["name"], number[]>>;

const median = (numbers: number[]): number => {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

/** Steps that are measured in turn; a step of one round may use what the step before left. */
interface Scenario {
  name: string;
  /** Largest ratio allowed, by step. */
  steps: Record<string, number | undefined>;
  /** How often, when not `rounds`. */
  times?: number;
  run(side: Side, step: string, round: number): number;
}

function measure(scenario: Scenario): Row[] {
  const samples: Samples = {};
  for (const step of Object.keys(scenario.steps)) samples[step] = { ours: [], go: [] };
  const times = scenario.times ?? rounds;
  const warm = scenario.times ? 1 : warmUp;
  for (let round = 0; round < warm + times; round++) {
    const order = round % 2 ? sides : sides.toReversed();
    for (const step of Object.keys(scenario.steps)) {
      for (const side of order) {
        const ms = scenario.run(side, step, round);
        if (round >= warm) samples[step]![side.name].push(ms);
      }
    }
  }
  return Object.entries(scenario.steps).map(([step, limit]) => ({
    name: [scenario.name, step].filter(Boolean).join(" "),
    limit,
    ours: median(samples[step]!.ours),
    go: median(samples[step]!.go),
  }));
}

/** ADD, CHECK and DEL of a network with bridge and host-local. */
function attachments(name: string, id: string, ranges: string[], steps: Scenario["steps"]): Scenario {
  const networks = new Map(sides.map((side) => [side, networkOf(side, id, ranges)]));
  const confs = new Map(sides.map((side) => [side, configFile(networks.get(side)!)]));
  const withResult = new Map<Side, string>();
  return {
    name,
    steps,
    run(side, step, round) {
      const target = { plugin: "bridge", container: `c${round}`, netns: namespaceOf(side, round) };
      const conf = step === "ADD" ? confs.get(side)! : withResult.get(side)!;
      const ms = timed(processOf(side, { ...target, command: step, conf }));
      if (step === "ADD") {
        const prevResult = JSON.parse(readFileSync(outputOf(side), "utf8"));
        withResult.set(side, configFile({ ...networks.get(side), prevResult }));
      }
      return ms;
    },
  };
}

/** One call of a plugin that does not touch what another call left. */
function single(name: string, limit: number | undefined, target: (side: Side, round: number) => Target) {
  const run: Scenario["run"] = (side, _, round) => timed(processOf(side, target(side, round)));
  return { name, steps: { "": limit }, run };
}

function manyAtOnce(): Scenario {
  const confs = new Map(
    sides.map((side) => [side, configFile(networkOf(side, "many", ["10.99.0.0/16", "fd99::/64"]))]),
  );
  return {
    name: `${crowd} containers at once`,
    steps: { ADD: 1, DEL: 1 },
    times: 7,
    run(side, step, round) {
      const commands = Array.from({ length: crowd }, (_, i) =>
        processOf(side, {
          plugin: "bridge",
          command: step,
          conf: confs.get(side)!,
          container: `m${round}-${i}`,
          netns: namespaceOf(side, i),
          output: `${outputOf(side)}${i}`,
        }),
      );
      const start = Bun.nanoseconds();
      const pids = commands.map((command) => command.start());
      for (const [i, pid] of pids.entries()) wait(pid, commands[i]!.what);
      return (Bun.nanoseconds() - start) / 1e6;
    },
  };
}

const [v4, v6] = ["10.98.0.0/16", "fd98::/64"];
const scenarios: (() => Scenario)[] = [
  () =>
    single("plugin start (VERSION)", undefined, () => ({
      plugin: "bridge",
      command: "VERSION",
      conf: "/dev/null",
    })),
  () => attachments("bridge + host-local", "one", [v4], { ADD: 0.7, CHECK: 0.75, DEL: 1 }),
  () => attachments("dual stack", "dual", [v4, v6], { ADD: 0.7, CHECK: 0.75, DEL: 1 }),
  () => {
    const confs = new Map(sides.map((side) => [side, configFile(networkOf(side, "alone", [v4]))]));
    return single("host-local alone, ADD", 2.2, (side, round) => ({
      plugin: "host-local",
      command: "ADD",
      conf: confs.get(side)!,
      container: `h${round}`,
    }));
  },
  () => {
    const conf = configFile({ cniVersion: "1.1.0", name: "lo", type: "loopback" });
    return single("loopback alone, ADD", 2.2, (side, round) => ({
      plugin: "loopback",
      command: "ADD",
      conf,
      netns: namespaceOf(side, round),
    }));
  },
  manyAtOnce,
];

/**
 * Peak memory of an ADD in MB, from /proc while it runs: what wait4 reports of a child of vfork includes its
 * parent's.
 */
function peakMemory(side: Side): number {
  const conf = configFile(networkOf(side, "mem", [v4]));
  const target = { plugin: "bridge", conf, container: "mem", netns: namespaceOf(side, 0) };
  let peak = 0;
  for (let i = 0; i < 10; i++) {
    const pid = processOf(side, { ...target, command: "ADD" }).start();
    while (running(pid)) {
      const [, kB] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
      peak = Math.max(peak, Number(kB ?? 0));
    }
    timed(processOf(side, { ...target, command: "DEL" }));
  }
  return peak / 1024;
}

/** Size on disk in MB of what replaces the three plugins and cnitool. */
const sizeOf = ({ name, bin }: Side): number =>
  (name === "ours" ? ["tscni"] : ["bridge", "host-local", "loopback", "cnitool"])
    .map((file) => statSync(join(bin, file), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((a, b) => a + b) / 1e6;

const cell = (value: string, width = 9) => value.padStart(width);
function line({ name, ours, go, limit }: Row, digits: number): string {
  const ratio = ours / go;
  const verdict = limit === undefined ? "" : ratio <= limit ? "ok" : "over";
  const numbers = [ours.toFixed(digits), go.toFixed(digits), ratio.toFixed(2), limit?.toFixed(2) ?? ""];
  return `${name.padEnd(34)}${numbers.map((text) => cell(text)).join("")}  ${verdict}`.trimEnd();
}

function main(): void {
  const wanted = (name: string) => positionals.length === 0 || positionals.some((p) => name.includes(p));
  const chosen = scenarios
    .map((make) => make())
    .filter(({ name, steps }) => wanted([name, ...Object.keys(steps)].join(" ")));
  for (const side of sides) namespaceOf(side, Math.max(rounds + warmUp, crowd));
  Bun.sleepSync(500);

  const print = (text: string) => values.json || console.log(text);
  print(`medians of ${rounds} rounds in turn; Go plugins v1.9.1\n`);
  print(`${"".padEnd(34)}${["ours ms", "Go ms", "ratio", "limit"].map((text) => cell(text)).join("")}`);
  const times = chosen.flatMap((scenario) => {
    const rows = measure(scenario);
    for (const row of rows) print(line(row, 2));
    return rows;
  });
  const sizes: Row[] = [];
  if (positionals.length === 0) {
    const row = (name: string, of: (side: Side) => number) =>
      sizes.push({ name, limit: undefined, ours: of(sides[0]!), go: of(sides[1]!) });
    row("peak memory of a bridge ADD, MB", peakMemory);
    row("size on disk, MB", sizeOf);
    print("");
    for (const size of sizes) print(line(size, 0));
  }
  if (values.json) console.log(JSON.stringify({ rounds, times, sizes }, null, 2));
  if (times.some(({ ours, go, limit }) => limit !== undefined && ours / go > limit)) process.exitCode = 1;
}

try {
  main();
} finally {
  for (const pool of pools.values()) for (const namespace of pool) namespace.close();
  rmSync(folder.path, { recursive: true, force: true });
}
