import { type Family, type Rule, ruleKey, type Table } from "@tscni/iptables";
import type { Owner } from "@tscni/record";
import { entriesInto } from "./iptables-chains.linux.ts";
import { chainOf, chainPrefix, groupsOf, ownerInComment } from "./iptables-layout.ts";
import type { Mapping } from "./mapping.ts";
import { conflict, notKnownToBeGone, ownersOf, type Published, verifyGone } from "./owners.linux.ts";
import type { Publication } from "./publication.ts";

/**
 * The containers that have our ports and are gone. Throws for one that is not. The same container may have a port
 * twice, by way of two networks: then the first rule decides.
 */
export function findGone(owner: Owner, family: Family, table: Table, publication: Publication): Published[] {
  const target = publication.targets.find((each) => each.family === family);
  if (target === undefined) return [];
  const wanted = new Map<string, Mapping>();
  for (const mapping of target.mappings) wanted.set(portKey(mapping), mapping);
  const own = chainOf(owner.network, owner.containerId);
  const conditions = target.entries?.map(({ rule }) => conditionsOf(rule)) ?? [];
  const gone: Published[] = [];
  for (const chain of chainsWithPorts(table, [...wanted.values()])) {
    if (chain === own) continue;
    const entries = entriesInto(table, chain);
    if (entries.length > 0 && !entries.some((rule) => conditions.includes(conditionsOf(rule)))) continue;
    for (const group of groupsOf(table.rules(chain))) {
      const mapping = wanted.get(portKey(group));
      if (mapping !== undefined) gone.push(...goneOwnersOf(owner, family, mapping, chain, entries));
    }
  }
  return gone;
}

/** The containers' chains that may do something with one of these ports. */
function chainsWithPorts(table: Table, mappings: readonly Mapping[]): string[] {
  // Each port is a look at the whole text; with many it is less work to take every chain apart.
  const chains =
    mappings.length > 16
      ? table.chains
      : mappings.flatMap(({ hostPort }) => table.chainsWith(` --dport ${hostPort} `));
  return [...new Set(chains)].filter((chain) => chain.startsWith(chainPrefix));
}

/** The owners of a port in another container's chain, if all of them are gone. Throws for one that is not. */
function goneOwnersOf(
  owner: Owner,
  family: Family,
  mapping: Mapping,
  chain: string,
  entries: readonly Rule[],
): Published[] {
  const owners = ownersOf(owner, family, mapping).filter(
    (record) => chainOf(record.network, record.containerId) === chain,
  );
  if (owners.length > 0) {
    verifyGone(mapping, owners);
    return owners;
  }
  // Nobody's record tells of it: the Go plugin made it.
  const named = entries.map(ownerInComment).find((found) => found !== undefined);
  if (named?.containerId === owner.containerId) return [];
  const who = named
    ? `container ${named.containerId} on network ${named.network}`
    : `the owner of the chain ${chain} of iptables`;
  throw conflict(mapping, who, notKnownToBeGone);
}

const portKey = (port: {
  protocol: string;
  hostPort: string | number;
  hostIp?: string | undefined;
}): string => `${port.protocol} ${port.hostIp ?? "*"} ${port.hostPort}`;

/** What a rule into a container's chain asks beside protocol and port, in one way of writing it. */
function conditionsOf(rule: Rule): string {
  const rest: string[] = [];
  for (let i = 0; i < rule.length; i++) {
    if (["-p", "-j", "--dports", "--destination-ports", "--comment"].includes(rule[i]!)) i++;
    else rest.push(rule[i]!);
  }
  return ruleKey(rest);
}
