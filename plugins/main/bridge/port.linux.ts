import { mismatch } from "@tscni/ip";
import {
  addPortVlans,
  deletePortVlans,
  getLink,
  type Link,
  type Netlink,
  type PortVlans,
  setPort,
} from "@tscni/netlink";
import type { Result } from "@tscni/types";
import { usesVlans } from "./bridge.linux.ts";
import type { BridgeConf } from "./conf.ts";

/** Sets the options of a container's port; its link is a port of the bridge already. */
export function joinPort(host: Netlink, index: number, conf: BridgeConf): void {
  if (conf.hairpinMode || conf.portIsolation)
    setPort(host, { index }, { hairpin: conf.hairpinMode, isolated: conf.portIsolation });
  if (!usesVlans(conf)) return;
  if (!conf.preserveDefaultVlan) deletePortVlans(host, { index }, [{ first: 1, last: 1 }]);
  const vlans = portVlans(conf);
  addPortVlans(host, { index }, vlans);
}

/**
 * The VLANs of a port. `vlan` is the one of its untagged frames; the trunk's are tagged. A trunk without
 * `vlan` has VLAN 1 for untagged frames.
 */
export function portVlans(conf: BridgeConf): PortVlans[] {
  const native = conf.vlan > 0 ? conf.vlan : 1;
  const trunk = conf.vlanTrunk.flatMap(({ id, minID, maxID }) => [
    ...(minID === undefined || maxID === undefined ? [] : [{ first: minID, last: maxID }]),
    ...(id === undefined ? [] : [{ first: id, last: id }]),
  ]);
  return [...trunk, { first: native, last: native, pvid: true, untagged: true }];
}

/** CHECK's part: the container's peer is the host interface of the result and a port of the bridge. */
export function verifyPort(host: Netlink, bridge: Link, result: Result, container: Link): void {
  const port = container.link === undefined ? undefined : getLink(host, { index: container.link });
  if (port === undefined) throw mismatch(`the host end of ${container.name} is missing`);
  if (port.master !== bridge.index) throw mismatch(`interface ${port.name} is not a port of ${bridge.name}`);
  const expected = result.interfaces.find((i) => i.name === port.name && !i.sandbox);
  if (expected === undefined) throw mismatch(`prevResult has no interface "${port.name}" on the host`);
  if (expected.mac !== undefined && expected.mac.toLowerCase() !== port.address)
    throw mismatch(`interface ${port.name} has MAC address ${port.address}, not ${expected.mac}`);
}
