import { mismatch, verifyPeer } from "@tscni/ip";
import { addPortVlans, deletePortVlans, type Link, type Netlink, setPort } from "@tscni/netlink";
import type { Result } from "@tscni/types";
import { usesVlans } from "./bridge.linux.ts";
import type { BridgeConf } from "./conf.ts";
import { portVlans } from "./vlans.ts";

/** Sets the options of a container's port; its link is a port of the bridge already. */
export function joinPort(host: Netlink, index: number, conf: BridgeConf): void {
  if (conf.hairpinMode || conf.portIsolation)
    setPort(host, { index }, { hairpin: conf.hairpinMode, isolated: conf.portIsolation });
  if (!usesVlans(conf)) return;
  if (!conf.preserveDefaultVlan) deletePortVlans(host, { index }, [{ first: 1, last: 1 }]);
  addPortVlans(host, { index }, portVlans(conf));
}

/** CHECK's part: the container's peer is the host interface of the result and a port of the bridge. */
export function verifyPort(host: Netlink, bridge: Link, result: Result, container: Link): void {
  const port = verifyPeer(host, result, container);
  if (port.master !== bridge.index) throw mismatch(`interface ${port.name} is not a port of ${bridge.name}`);
}
