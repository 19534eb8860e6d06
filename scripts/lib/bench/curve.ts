/** What the next container costs, with many attached already. */
import { type Backend, type Chain, chainOf } from "./chain.ts";
import { containerOf, type Side, sides } from "./lab.ts";
import { median } from "./measure.ts";

export interface Point {
  attached: number;
  ADD: number;
  DEL: number;
  /** Not measured but continued in a straight line. */
  extrapolated?: true;
}

export interface Curve {
  backend: Backend;
  ours: Point[];
  go: Point[];
  /** The ADD with the most attached, in terms of the first. */
  growth: number;
  limit: number | undefined;
}

/** Where it is measured. Go's takes minutes to get to a thousand, so it ends earlier and is continued. */
const points: Record<Side["name"], number[]> = { ours: [0, 30, 100, 300, 1000], go: [0, 30, 100] };
const samples = 7;

/** So many interfaces share a few namespaces: a thousand of these would take longer than all the rest. */
const namespaces = 16;

export function curve(backend: Backend, limit: number | undefined): Curve {
  const [ours, go] = sides.map((side) => grow(side, backend)) as [Point[], Point[]];
  for (const { attached } of ours.slice(go.length))
    go.push(continued(go.slice(0, points.go.length), attached));
  return { backend, ours, go, growth: ours.at(-1)!.ADD / ours[0]!.ADD, limit };
}

function grow(side: Side, backend: Backend): Point[] {
  const chain = chainOf(side, `cu${backend[0]}`, backend);
  let attached = 0;
  return points[side.name].map((wanted) => {
    for (; attached < wanted; attached++) chain.add(member(side, attached));
    return { attached, ...next(side, chain, attached) };
  });
}

function next(side: Side, chain: Chain, attached: number): { ADD: number; DEL: number } {
  const times = { ADD: [] as number[], DEL: [] as number[] };
  for (let i = 0; i <= samples; i++) {
    const one = member(side, attached + i);
    const [add, del] = [chain.add(one), chain.del(one)];
    if (i === 0) continue;
    times.ADD.push(add);
    times.DEL.push(del);
  }
  return { ADD: median(times.ADD), DEL: median(times.DEL) };
}

const member = (side: Side, number: number) => ({
  number,
  netns: containerOf(side, number % namespaces),
  ifName: `net${Math.floor(number / namespaces)}`,
});

/** By the line through the first and the last point. */
function continued(measured: readonly Point[], attached: number): Point {
  const [first, last] = [measured[0]!, measured.at(-1)!];
  const at = (step: "ADD" | "DEL") =>
    first[step] + ((last[step] - first[step]) * attached) / (last.attached - first.attached);
  return { attached, ADD: at("ADD"), DEL: at("DEL"), extrapolated: true };
}
