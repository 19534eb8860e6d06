/** A program that stays: attach and detach through our library with plugins in process, and through Go's libcni. */
import { join } from "node:path";
import { findGoBin, root } from "@tscni/test-support";
import { configFile, containerOf, folderOf, networkOf, type Side, sides } from "./lab.ts";
import { median, type Row } from "./measure.ts";

const containers = 25;
const turns = 4;
/** Attachments at the beginning of each program that don't count: it is to be warm. */
const cold = 5;

export function warm(limits: Record<"ADD" | "DEL", number | undefined>): Row[] {
  const samples = {
    ours: { ADD: [] as number[], DEL: [] as number[] },
    go: { ADD: [] as number[], DEL: [] as number[] },
  };
  for (let turn = 0; turn < turns; turn++) {
    for (const side of turn % 2 ? sides : sides.toReversed()) {
      const took = runProgram(side);
      for (const verb of ["ADD", "DEL"] as const) samples[side.name][verb].push(...took[verb].slice(cold));
    }
  }
  return (["ADD", "DEL"] as const).map((verb) => ({
    name: `bridge + host-local, in process, ${verb}`,
    limit: limits[verb],
    ours: median(samples.ours[verb]),
    go: median(samples.go[verb]),
  }));
}

function runProgram(side: Side): Record<"ADD" | "DEL", number[]> {
  const { name, cniVersion, ...plugin } = networkOf(side, "warm", ["10.97.0.0/16", "fd97::/64"]);
  const list = configFile({ name, cniVersion, plugins: [plugin] });
  const cache = join(folderOf(side), "cache");
  const namespaces = Array.from({ length: containers + cold }, (_, i) => containerOf(side, i));
  const command =
    side.name === "ours"
      ? [process.execPath, join(import.meta.dirname, "warm-ours.ts"), list, cache, ...namespaces]
      : [goAttach(), list, side.bin, cache, ...namespaces];
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: root, timeout: 300_000 });
  if (exitCode !== 0) throw new Error(`${command[0]}: ${stderr}`);
  return JSON.parse(stdout.toString());
}

function goAttach(): string {
  const found = findGoBin("attach");
  if (found === undefined) throw new Error("no program for Go's libcni: scripts/bench builds it where Go is");
  return found;
}
