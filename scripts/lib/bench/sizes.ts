import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { running, timed } from "../spawn.linux.ts";
import { configFile, containerOf, networkOf, processOf, type Side } from "./lab.ts";

/**
 * Peak memory of an ADD in MB, from /proc while it runs: what wait4 reports of a child of vfork includes its
 * parent's.
 */
export function peakMemory(side: Side): number {
  const conf = configFile(networkOf(side, "mem", ["10.98.0.0/16"]));
  const target = { plugin: "bridge", conf, container: "mem", netns: containerOf(side, 0) };
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

/** Size on disk in MB of what replaces the plugins named here and cnitool. */
export const sizeOf = ({ name, bin }: Side): number =>
  (name === "ours"
    ? ["tscni"]
    : ["bridge", "host-local", "loopback", "portmap", "firewall", "tuning", "cnitool"]
  )
    .map((file) => statSync(join(bin, file), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((a, b) => a + b) / 1e6;
