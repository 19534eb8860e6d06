import type { PortVlans } from "@tscni/netlink";
import type { BridgeConf } from "./conf.ts";

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
