/** What the next container costs, with many attached already; with none, on a host that has nothing of ours yet. */
import { type Backend, type Chain, chainOf, type Member } from "./chain.ts";
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
const points: Record<Side["name"], number[]> = { ours: [1, 100, 300, 1000], go: [1, 100, 300] };
const samples = 9;

/** How long new interfaces have things to say, ms: reports of multicast groups are repeated within a second. */
const settling = 2000;

/** So many interfaces share a few namespaces: a thousand of these would take longer than all the rest. */
const namespaces = 16;

export function curve(backend: Backend, limit: number | undefined): Curve {
  const [ours, go] = sides.map((side) => grow(side, backend)) as [Point[], Point[]];
  for (const { attached } of ours.slice(go.length))
    go.push(continued(go.slice(1, points.go.length + 1), attached));
  return { backend, ours, go, growth: ours.at(-1)!.ADD / ours[0]!.ADD, limit };
}

function grow(side: Side, backend: Backend): Point[] {
  const name = `cu${backend[0]}`;
  const member = (number: number) => memberOf(side, backend, number);
  const first = times((i) => both(chainOf(side, `${name}${i}`, backend), member(i)));
  const chain = chainOf(side, name, backend);
  let attached = 0;
  const later = points[side.name].map((wanted) => {
    for (; attached < wanted; attached++) chain.add(member(attached));
    Bun.sleepSync(settling);
    return { attached, ...times((i) => both(chain, member(attached + i))) };
  });
  return [{ attached: 0, ...first }, ...later];
}

interface Times {
  ADD: number;
  DEL: number;
}

const both = (chain: Chain, one: Member): Times => ({ ADD: chain.add(one), DEL: chain.del(one) });

/** The medians of some samples; one before them does not count. */
function times(sample: (i: number) => Times): Times {
  const all = Array.from({ length: samples + 1 }, (_, i) => sample(i)).slice(1);
  return { ADD: median(all.map(({ ADD }) => ADD)), DEL: median(all.map(({ DEL }) => DEL)) };
}

/** The interfaces of one curve stay until the end, so each has namespaces of its own. */
const memberOf = (side: Side, backend: Backend, number: number): Member => ({
  number,
  netns: containerOf(side, (number % namespaces) + (backend === "iptables" ? 0 : namespaces)),
  ifName: `net${Math.floor(number / namespaces)}`,
});

/** By the line through the first and the last point; one that falls is noise. */
function continued(measured: readonly Point[], attached: number): Point {
  const [first, last] = [measured[0]!, measured.at(-1)!];
  const at = (step: "ADD" | "DEL") =>
    first[step] + (Math.max(0, last[step] - first[step]) * attached) / (last.attached - first.attached);
  return { attached, ADD: at("ADD"), DEL: at("DEL"), extrapolated: true };
}
