/** A plugin that changes what bridge made: only its own calls are measured. */
import { timed } from "../spawn.linux.ts";
import {
  configFile,
  containerOf,
  folderOf,
  networkOf,
  processOf,
  resultOf,
  type Side,
  sides,
} from "./lab.ts";
import type { Scenario } from "./measure.ts";

export function behindBridge(
  plugin: string,
  own: (side: Side) => object,
  steps: Scenario["steps"],
  subnet: string,
): Scenario {
  const networks = new Map(sides.map((side) => [side, networkOf(side, plugin.slice(0, 4), [subnet])]));
  const confs = new Map<Side, string>();
  return {
    name: plugin,
    steps,
    run(side, step, round) {
      const { ipam: _, bridge: __, isGateway: ___, ...common } = networks.get(side)!;
      const target = { container: `p${round}`, netns: containerOf(side, round) };
      const runBridge = (command: string) =>
        timed(
          processOf(side, { ...target, plugin: "bridge", command, conf: configFile(networks.get(side)!) }),
        );
      if (step === "ADD") {
        runBridge("ADD");
        confs.set(side, configFile({ ...common, type: plugin, ...own(side), prevResult: resultOf(side) }));
      }
      const quiet = { ...target, stderr: "/dev/null" }; // Go's sbr tells every step
      const ms = timed(processOf(side, { ...quiet, plugin, command: step, conf: confs.get(side)! }));
      if (step === "DEL") runBridge("DEL");
      return ms;
    },
  };
}

export const tuned = (side: Side): object => ({
  dataDir: `${folderOf(side)}/tuning`,
  mac: "0a:00:00:00:00:05",
  mtu: 1400,
  promisc: true,
  sysctl: { "net.core.somaxconn": "500", "net.ipv4.conf.IFNAME.arp_ignore": "1" },
});

export const limited = (): object => ({
  ingressRate: 10_000_000,
  ingressBurst: 1_000_000,
  egressRate: 10_000_000,
  egressBurst: 1_000_000,
});
