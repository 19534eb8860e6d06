import { type Side, sides } from "./lab.ts";

export interface Row {
  name: string;
  limit: number | undefined;
  ours: number;
  go: number;
}

/** Steps that are measured in turn; a step of one round may use what the step before left. */
export interface Scenario {
  name: string;
  /** Largest ratio allowed, by step. */
  steps: Record<string, number | undefined>;
  /** How often, when not as often as the others. */
  times?: number;
  /** Rounds before those that count; 5, or 1 of a scenario that says its times. */
  warmUp?: number;
  /** One step of one side: milliseconds. */
  run(side: Side, step: string, round: number): number;
}

export const warmUp = 5;

export const median = (numbers: number[]): number => {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

/** The medians of a scenario, its sides in turn, the one that begins changing every round. */
export function measure(scenario: Scenario, rounds: number): Row[] {
  const steps = Object.keys(scenario.steps);
  const samples = new Map(steps.map((step) => [step, { ours: [] as number[], go: [] as number[] }]));
  const times = scenario.times ?? rounds;
  const warm = scenario.warmUp ?? (scenario.times ? 1 : warmUp);
  for (let round = 0; round < warm + times; round++) {
    const order = round % 2 ? sides : sides.toReversed();
    for (const step of steps) {
      for (const side of order) {
        const ms = scenario.run(side, step, round);
        if (round >= warm) samples.get(step)![side.name].push(ms);
      }
    }
  }
  return steps.map((step) => ({
    name: [scenario.name, step].filter(Boolean).join(" "),
    limit: scenario.steps[step],
    ours: median(samples.get(step)!.ours),
    go: median(samples.get(step)!.go),
  }));
}
