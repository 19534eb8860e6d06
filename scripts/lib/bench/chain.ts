/** The chain that container engines make: bridge with ipMasq, then portmap with two ports. */
import { configFile, containerOf, networkOf, newHost, processOf, resultOf, type Side, sides } from "./lab.ts";
import type { Scenario } from "./measure.ts";

export type Backend = "iptables" | "nftables";

/** One container of a chain; its number gives it its ports. */
export interface Member {
  number: number;
  netns: string;
  ifName?: string;
}

/** A side's chain on a host of its own. */
export interface Chain {
  readonly veths: () => number;
  /** Each runs both plugins and returns their milliseconds; the time between them does not count. */
  add(member: Member): number;
  check(member: Member): number;
  del(member: Member): number;
}

export function chainOf(side: Side, id: string, backend: Backend, subnet = "10.100.0.0/16"): Chain {
  const host = newHost();
  const network = networkOf(side, id, [subnet]);
  // No default route, so that a container can be attached several times.
  const ipam = { ...(network.ipam as object), routes: [] };
  const bridge = { ...network, ipMasq: true, ipMasqBackend: backend, ipam };
  const { cniVersion, name } = network;
  const portmap = {
    cniVersion,
    name,
    type: "portmap",
    backend,
    snat: true,
    capabilities: { portMappings: true },
  };
  const files = { bridge: configFile({}), portmap: configFile({}) };
  const results = new Map<number, { first: object; last: object }>();

  const run = (plugin: "bridge" | "portmap", command: string, member: Member, prevResult?: object) => {
    const { number, netns, ifName = "eth0" } = member;
    const own =
      plugin === "bridge" ? bridge : { ...portmap, runtimeConfig: { portMappings: portsOf(number) } };
    const conf = configFile({ ...own, ...(prevResult ? { prevResult } : {}) }, files[plugin]);
    return host.timed(processOf(side, { plugin, command, conf, container: `m${number}`, netns, ifName }));
  };
  return {
    veths: () => host.file.run("ip", "-o", "link", "show", "type", "veth").split("\n").filter(Boolean).length,
    add(member) {
      const one = run("bridge", "ADD", member);
      const first = resultOf(side);
      const two = run("portmap", "ADD", member, first);
      results.set(member.number, { first, last: resultOf(side) });
      return one + two;
    },
    check(member) {
      const { last } = results.get(member.number)!;
      return run("bridge", "CHECK", member, last) + run("portmap", "CHECK", member, last);
    },
    del(member) {
      const { last } = results.get(member.number)!;
      results.delete(member.number);
      return run("portmap", "DEL", member, last) + run("bridge", "DEL", member, last);
    },
  };
}

export const portsOf = (number: number): object[] =>
  [0, 1].map((i) => ({ hostPort: 10_000 + 2 * number + i, containerPort: 80 + i, protocol: "tcp" }));

/** The chain with one container at a time. */
export function chain(backend: Backend, steps: Scenario["steps"]): Scenario {
  const chains = new Map(sides.map((side) => [side, chainOf(side, `ch${backend[0]}`, backend)]));
  return {
    name: `bridge + portmap, ${backend}`,
    steps,
    run(side, step, round) {
      const member = { number: round, netns: containerOf(side, round) };
      return chains.get(side)![step.toLowerCase() as "add" | "check" | "del"](member);
    },
  };
}
