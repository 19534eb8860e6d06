import { ipText } from "@tscni/addr";
import type { Table } from "@tscni/iptables";
import type { Call } from "@tscni/skel";
import type { PortmapConf } from "./conf.ts";
import { tablesOf } from "./host-ports.linux.ts";
import { mayBeThere, type Removal, removeChains } from "./iptables-chains.linux.ts";
import { chainOf, groupsOf, oldSnatChainOf } from "./iptables-layout.ts";
import { addressOf, containerAddresses } from "./mapping.ts";
import { removeGoRules } from "./nft-go.linux.ts";
import { sweepNftables } from "./nftables-removal.linux.ts";
import { allPublished } from "./owners.linux.ts";
import type { Publication } from "./publication.ts";

/** What DEL knows of the attachment. */
export interface Known {
  /** Its record; what that tells of is removed already. */
  published: Publication | undefined;
  /** Whether the runtime, or a record that can't be read, says that there were ports. */
  asked: boolean;
}

/**
 * DEL's part beyond our own record: what the Go plugin made, on either backend, and our own where there is no record
 * any more. Looking starts no process, but for iptables' legacy tables: these are read.
 */
export function removeLeftovers(call: Call<PortmapConf>, { published, asked }: Known): void {
  removeGoRules(call.containerId);
  if (published !== undefined) return;
  const chain = chainOf(call.network, call.containerId);
  for (const family of [4, 6] as const) {
    if (!mayBeThere(family, chain)) continue;
    const removed = removeChains(family, (table) => {
      const removals = new Map<string, Removal>([[chain, removalOf(call, table)]]);
      return removals.set(oldSnatChainOf(call.network, call.containerId), "all");
    });
    // One look has to do where nothing says that there is anything.
    if (!asked && removed.length === 0) break;
  }
  if (asked) for (const table of tablesOf(call.conf)) sweepNftables(call, table);
}

/**
 * What to remove of a chain that is the container's own on the network, all its interfaces': what leads to the
 * addresses of this one, if the runtime tells them, or else what doesn't lead to those of another.
 */
function removalOf(call: Call<PortmapConf>, table: Table): Removal {
  const { network, containerId, ifName, prevResult } = call;
  const own = prevResult === undefined ? [] : containerAddresses(prevResult, ifName);
  if (own.length > 0) return new Set(own.map(({ ip }) => ipText(ip)));
  const others = new Set(
    allPublished()
      .filter((other) => other.network === network && other.containerId === containerId)
      .flatMap(({ data }) => data.targets.map(addressOf)),
  );
  if (others.size === 0) return "all";
  const present = groupsOf(table.rules(chainOf(network, containerId))).map(({ address }) => address);
  return new Set(present.filter((address) => !others.has(address)));
}
