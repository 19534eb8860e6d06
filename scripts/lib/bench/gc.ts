/** GC of many attachments that nobody wants any more, by each side's cnitool. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { prepare, wait } from "../spawn.linux.ts";
import { type Backend, portsOf } from "./chain.ts";
import {
  baseEnv,
  configFile,
  containerOf,
  folderOf,
  networkOf,
  newHost,
  outputOf,
  type Side,
  sides,
} from "./lab.ts";
import type { Scenario } from "./measure.ts";

export const stale = 100;

export function gcOfMany(backend: Backend, limit: number | undefined): Scenario {
  const nodes = new Map(sides.map((side) => [side, nodeOf(side, backend)]));
  return {
    name: `cnitool gc of ${stale}, ${backend}`,
    steps: { "": limit },
    times: 1,
    warmUp: 0,
    run: (side) => nodes.get(side)!(),
  };
}

/** Returns what attaches all the containers and measures one gc. */
function nodeOf(side: Side, backend: Backend): () => number {
  const host = newHost();
  const confDir = join(folderOf(side), `gc-${backend}`);
  mkdirSync(confDir);
  const { name, cniVersion, ...bridge } = networkOf(side, `gc${backend[0]}`, ["10.101.0.0/16"]);
  const plugins = [
    { ...bridge, ipMasq: true, ipMasqBackend: backend },
    { type: "portmap", backend, snat: true, capabilities: { portMappings: true } },
  ];
  configFile({ cniVersion, name, plugins }, join(confDir, "net.conflist"));
  const cnitool = (i: number, ...args: string[]) =>
    prepare({
      file: join(side.bin, "cnitool"),
      args,
      env: { ...baseEnv(side), NETCONFPATH: confDir, CAP_ARGS: JSON.stringify({ portMappings: portsOf(i) }) },
      stdin: "/dev/null",
      stdout: `${outputOf(side)}${i}`,
    });
  return () => {
    const adds = Array.from({ length: stale }, (_, i) =>
      cnitool(i, "add", name as string, containerOf(side, i)),
    );
    for (let i = 0; i < stale; i += 4) {
      const some = adds.slice(i, i + 4);
      const pids = some.map((command) => host.start(command));
      for (const [k, pid] of pids.entries()) wait(pid, some[k]!.what);
    }
    const ms = host.timed(cnitool(0, "gc", name as string, containerOf(side, 0)));
    const left = host.file.run("ip", "-o", "link", "show", "type", "veth");
    if (left !== "") throw new Error(`${side.name}: gc left ${left}`);
    return ms;
  };
}
