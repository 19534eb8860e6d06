import { createLink, deleteLink, getLink, type Link, listLinks, type Netlink, setLink } from "@tscni/netlink";
import { CniError, ErrorCode } from "@tscni/types";
import type { VrfConf } from "./conf.ts";

/** A VRF: a link that has a routing table and is the master of those whose packets go by it. */
export interface Vrf {
  index: number;
  name: string;
  up: boolean;
  table: number;
}

/** The VRF of that name; undefined when there is none, or the name is another kind of link's. */
export function findVrf(netlink: Netlink, name: string): Vrf | undefined {
  const link = name === "" ? undefined : getLink(netlink, { name });
  return link && vrfOf(link);
}

const vrfOf = ({ index, name, up, kind, vrf }: Link): Vrf | undefined =>
  kind === "vrf" ? { index, name, up, table: vrf?.table ?? 0 } : undefined;

/** The VRF of the config, made if there is none, and up. Throws when there is one with another table. */
export function ensureVrf(container: Netlink, { vrfname, table }: VrfConf): Vrf {
  const link = getLink(container, { name: vrfname }) ?? createVrf(container, vrfname, table);
  const vrf = vrfOf(link);
  if (vrf === undefined)
    throw new CniError(ErrorCode.Internal, `"${vrfname}" already exists but is not a VRF`, {
      details: `it is of kind ${link.kind ?? "none"}; choose another name in the key "vrfname"`,
    });
  if (table > 0 && vrf.table !== table)
    throw new CniError(
      ErrorCode.Internal,
      `VRF ${vrfname} already exist with different routing table ${vrf.table}`,
    );
  if (!vrf.up) setLink(container, { index: vrf.index }, { up: true });
  return vrf;
}

const createVrf = (container: Netlink, name: string, table: number): Link =>
  createLink(container, { kind: "vrf", name, vrf: { table: table || freeTable(container) } });

/** RT_TABLE_DEFAULT, _MAIN and _LOCAL, linux/rtnetlink.h */
const reserved = [253, 254, 255];

/** The lowest table from 1 that no VRF of the namespace has. */
function freeTable(container: Netlink): number {
  const taken = new Set([
    ...reserved,
    ...listLinks(container, { kind: "vrf" }).map((link) => link.vrf?.table),
  ]);
  for (let table = 1; ; table++) if (!taken.has(table)) return table;
}

/** Deletes the VRF unless an interface is still in it. */
export function deleteVrfIfEmpty(container: Netlink, name: string): void {
  const vrf = findVrf(container, name);
  if (vrf && listLinks(container, { master: vrf.index }).length === 0) deleteLink(container, vrf.index);
}
