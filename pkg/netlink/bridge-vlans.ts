import { AF_BRIDGE } from "./families.ts";
import type { Requester } from "./message.ts";
import type { Netlink } from "./netlink.ts";
import { bridgeLinkFormat } from "./tables/link.ts";

// linux/if_bridge.h
const BRIDGE_FLAGS_SELF = 2;
const BRIDGE_VLAN_INFO_PVID = 2;
const BRIDGE_VLAN_INFO_UNTAGGED = 4;
const BRIDGE_VLAN_INFO_RANGE_BEGIN = 8;
const BRIDGE_VLAN_INFO_RANGE_END = 16;
/** linux/rtnetlink.h: report ranges of VLANs, not each of up to 4094. */
const RTEXT_FILTER_BRVLAN_COMPRESSED = 4;

/** VLANs that a bridge's port belongs to, from `first` to `last` (1 to 4094). */
export interface PortVlans {
  first: number;
  last: number;
  /** Frames that come in untagged belong to it; only one VLAN can be that. */
  pvid?: boolean;
  /** Its frames leave untagged. */
  untagged?: boolean;
}

/** Where VLANs are set: a port, or (`self`) the bridge itself as a port of its own. */
export interface VlanTarget {
  index: number;
  self?: boolean;
}

/** Adds a port to VLANs. Throws NetlinkError: EOPNOTSUPP when the kernel has no VLAN filtering. */
export function addPortVlans(requests: Requester, target: VlanTarget, vlans: PortVlans[]): void {
  requests.request(
    bridgeLinkFormat,
    "SET",
    0,
    headerOf(target),
    attributesOf(target, vlans),
    labelOf(target),
  );
}

/** Takes a port out of VLANs. Throws NetlinkError. */
export function deletePortVlans(requests: Requester, target: VlanTarget, vlans: PortVlans[]): void {
  requests.request(
    bridgeLinkFormat,
    "DEL",
    0,
    headerOf(target),
    attributesOf(target, vlans),
    labelOf(target),
  );
}

const headerOf = ({ index }: VlanTarget) => ({ family: AF_BRIDGE, index });

const labelOf = ({ index }: VlanTarget): string => `vlans of index ${index}`;

function attributesOf({ self }: VlanTarget, vlans: PortVlans[]) {
  return { bridge: { flags: self ? BRIDGE_FLAGS_SELF : undefined, vlans: vlans.flatMap(infoOf) } };
}

function infoOf({ first, last, pvid, untagged }: PortVlans) {
  const flags = (pvid ? BRIDGE_VLAN_INFO_PVID : 0) | (untagged ? BRIDGE_VLAN_INFO_UNTAGGED : 0);
  if (first === last) return [{ flags, vid: first }];
  return [
    { flags: flags | BRIDGE_VLAN_INFO_RANGE_BEGIN, vid: first },
    { flags: flags | BRIDGE_VLAN_INFO_RANGE_END, vid: last },
  ];
}

/** The VLANs of every port, by its index; ports without any are absent. */
export function listPortVlans(netlink: Netlink): Map<number, PortVlans[]> {
  const found = new Map<number, PortVlans[]>();
  const extMask = RTEXT_FILTER_BRVLAN_COMPRESSED;
  for (const { header, attributes } of netlink.dump(
    bridgeLinkFormat,
    { family: AF_BRIDGE },
    { extMask },
    "vlans",
  )) {
    const vlans = vlansOf(attributes.bridge?.vlans ?? []);
    if (vlans.length > 0) found.set(header.index, vlans);
  }
  return found;
}

function vlansOf(infos: { flags: number; vid: number }[]): PortVlans[] {
  const vlans: PortVlans[] = [];
  for (const { flags, vid } of infos) {
    if ((flags & BRIDGE_VLAN_INFO_RANGE_END) !== 0) vlans.at(-1)!.last = vid;
    else
      vlans.push({
        first: vid,
        last: vid,
        pvid: (flags & BRIDGE_VLAN_INFO_PVID) !== 0,
        untagged: (flags & BRIDGE_VLAN_INFO_UNTAGGED) !== 0,
      });
  }
  return vlans;
}
