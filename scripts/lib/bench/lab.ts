/**
 * What the scenarios of scripts/bench.ts work with: two sides, ours and Go's, each with a host namespace, networks
 * and containers of its own.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Namespace, openNamespace } from "@tscni/ns";
import { distBin, findGoBin, makeNamespace, type TestNamespace, temporaryFolder } from "@tscni/test-support";
import { type Command, prepare, wait } from "../spawn.linux.ts";

export interface Side {
  readonly name: "ours" | "go";
  readonly bin: string;
}

const goBridge = findGoBin("bridge");
if (goBridge === undefined) throw new Error("no Go plugins: scripts/test installs them where Go is");
const go: Side = { name: "go", bin: dirname(goBridge) };
const ours: Side = { name: "ours", bin: distBin };
export const sides: readonly Side[] = [ours, go];

const folder = temporaryFolder();
export const folderOf = (side: Side): string => join(folder.path, side.name);
for (const side of sides) mkdirSync(folderOf(side));
export const outputOf = (side: Side): string => join(folder.path, `${side.name}.out`);
export const resultOf = (side: Side): object => JSON.parse(readFileSync(outputOf(side), "utf8"));

let files = 0;
/** A file with a config, to be a plugin's stdin. */
export function configFile(conf: object, path = join(folder.path, `conf${files++}`)): string {
  writeFileSync(path, JSON.stringify(conf));
  return path;
}

export interface Target {
  plugin: string;
  command: string;
  conf: string;
  container?: string;
  ifName?: string;
  netns?: string;
  output?: string;
  stderr?: string;
}

/** The environment of a side's processes. */
export const baseEnv = (side: Side): Record<string, string> => ({
  CNI_PATH: side.bin,
  PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
});

/** A plugin's process of one side. */
export function processOf(side: Side, { plugin, command, conf, ...more }: Target): Command {
  const env = {
    CNI_COMMAND: command,
    CNI_CONTAINERID: more.container ?? "bench",
    CNI_NETNS: more.netns ?? "/run/netns/none",
    CNI_IFNAME: more.ifName ?? (plugin === "loopback" ? "lo" : "eth0"),
    ...baseEnv(side),
  };
  const stdout = more.output ?? outputOf(side);
  const file = join(side.bin, plugin);
  return prepare({ file, env, stdin: conf, stdout, ...(more.stderr ? { stderr: more.stderr } : {}) });
}

/** A network of each side's own. */
export function networkOf(side: Side, name: string, ranges: string[]): Record<string, unknown> {
  return {
    cniVersion: "1.1.0",
    name: `${name}-${side.name}`,
    type: "bridge",
    bridge: `${name}${side.name}`,
    isGateway: true,
    ipam: {
      type: "host-local",
      dataDir: folderOf(side),
      ranges: ranges.map((subnet) => [{ subnet }]),
      routes: ranges.map((subnet) => ({ dst: subnet.includes(":") ? "::/0" : "0.0.0.0/0" })),
    },
  };
}

/** A namespace, its file and a descriptor of it. */
interface Host {
  file: TestNamespace;
  open: Namespace;
}
const hosts: Host[] = [];

/** A host of its own for what two sides, or two runs, would share: tables of rules. Returns what starts a process there. */
export function newHost(): {
  file: TestNamespace;
  start(command: Command): number;
  timed(command: Command): number;
} {
  const file = makeNamespace("host");
  file.run("ip", "link", "set", "lo", "up");
  const open = openNamespace(file.path);
  hosts.push({ file, open });
  const start = (command: Command) => open.enter(command.start);
  return {
    file,
    start,
    // The namespace is entered before the clock starts.
    timed: (command) =>
      open.enter(() => {
        const begin = Bun.nanoseconds();
        wait(command.start(), command.what);
        return (Bun.nanoseconds() - begin) / 1e6;
      }),
  };
}

// Namespaces are made before anything is measured, and go at the end: the kernel takes its time over them.
const pools = new Map<Side, TestNamespace[]>(sides.map((side) => [side, []]));
export function containerOf(side: Side, i: number): string {
  const pool = pools.get(side)!;
  while (pool.length <= i) pool.push(makeNamespace());
  return pool[i]!.path;
}

export function closeLab(): void {
  for (const pool of pools.values()) for (const namespace of pool) namespace.close();
  for (const { file, open } of hosts) {
    open.close();
    file.close();
  }
  rmSync(folder.path, { recursive: true, force: true });
}
