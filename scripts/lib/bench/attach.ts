/** One plugin at a time, and many of one at once. */
import { timed, wait } from "../spawn.linux.ts";
import {
  configFile,
  containerOf,
  networkOf,
  outputOf,
  processOf,
  resultOf,
  type Side,
  sides,
  type Target,
} from "./lab.ts";
import type { Scenario } from "./measure.ts";

/** How many containers come and go at once. */
export const crowd = 64;

/** ADD, CHECK and DEL of a network with a main plugin, bridge unless `own` says otherwise, and host-local. */
export function attachments(
  name: string,
  id: string,
  ranges: string[],
  steps: Scenario["steps"],
  own: { type: string; [key: string]: unknown } = { type: "bridge" },
): Scenario {
  const networks = new Map(sides.map((side) => [side, { ...networkOf(side, id, ranges), ...own }]));
  const confs = new Map(sides.map((side) => [side, configFile(networks.get(side)!)]));
  const withResult = new Map<Side, string>();
  return {
    name,
    steps,
    run(side, step, round) {
      const target = { plugin: own.type, container: `c${round}`, netns: containerOf(side, round) };
      const conf = step === "ADD" ? confs.get(side)! : withResult.get(side)!;
      const ms = timed(processOf(side, { ...target, command: step, conf }));
      if (step === "ADD")
        withResult.set(side, configFile({ ...networks.get(side), prevResult: resultOf(side) }));
      return ms;
    },
  };
}

/** One call of a plugin that does not touch what another call left. */
export function single(
  name: string,
  limit: number | undefined,
  target: (side: Side, round: number) => Target,
): Scenario {
  return { name, steps: { "": limit }, run: (side, _, round) => timed(processOf(side, target(side, round))) };
}

export function manyAtOnce(): Scenario {
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
          netns: containerOf(side, i),
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
