import type { Owner } from "@tscni/record";
import type { Backend } from "./conf.ts";
import { keyOf, type Mapping, type Target } from "./mapping.ts";

/** Which connections to a container get the host's own address as their source. */
export type Masquerading = "none" | "subnet" | "all";

/** The kind of our records, see @tscni/record. */
export const kind = "portmap";

/** What an attachment has published: its record, written before the act. */
export interface Publication {
  backend: Backend;
  /** nftables: the table that its elements are in. */
  table?: string;
  /** nftables: what is masqueraded. */
  masquerading?: Masquerading;
  /**
   * Another attachment is concerned, as a rule of the same container: under nftables it asked for something of this,
   * too, and gets it when this one goes; under iptables it shares the chain.
   */
  heir?: true;
  /** nftables: this is the one that asked for something of another's. */
  waits?: true;
  /** The interfaces on the host that the result named; one of them gone means that the container is gone. */
  hostInterfaces: string[];
  /** CNI_NETNS, for containers that have no interface on the host. */
  netns: string;
  targets: PublishedTarget[];
}

export interface PublishedTarget extends Target {
  /** iptables: the rules of CNI-HOSTPORT-DNAT that lead to the container's chain. */
  entries?: Entry[];
}

export interface Entry {
  /** As arguments. */
  rule: string[];
  /** In front of the others: it is for ports of one address, which win over those of all addresses. */
  leading?: true;
  /** The reference has no such rule. */
  own?: true;
}

/** An attachment as messages name it. */
export const ownerText = ({ network, containerId, ifName }: Owner): string =>
  `container ${containerId} (${ifName} on network ${network})`;

/** The mapping of a publication for the same port, if it has one. */
export function sameMapping(publication: Publication, family: 4 | 6, key: string): Mapping | undefined {
  for (const target of publication.targets) {
    if (target.family !== family) continue;
    for (const mapping of target.mappings) if (keyOf(mapping) === key) return mapping;
  }
  return undefined;
}
