import { cidrText, networkOf, parseCidr } from "@tscni/addr";
import { address, condition, identifier, type NftText, nft } from "@tscni/nftables";
import type { Owner } from "@tscni/record";
import { sha256 } from "@tscni/sys";
import { defaultMarkBit } from "./conf.ts";
import type { Target } from "./mapping.ts";

/*
 * One table for both IP families. A host port is an element of a map: `exact` by protocol, address and port, `any`
 * by protocol and port. What we lead to a container is marked until it leaves; whether it has to be masqueraded is told
 * by the container's address: `masq` has the chain that knows from where. Base chains and these lookups are all that a packet meets, however many
 * containers there are, and nat chains only see the first packet of each connection.
 *
 * Conditions come from the network's config and hold for all of its containers. Each set of them has a table of its
 * own, so that networks don't have each other's.
 */

/** The start of the names of all our tables. */
export const tablePrefix = "tscni_portmap";

/** What holds for all ports of a table. */
export interface Conditions {
  v4: readonly string[];
  v6: readonly string[];
  /** The bit of the packet mark that tells what we have led to a container, on its way to `postrouting`. */
  bit: number;
}

/** The table for ports under these conditions. */
export function tableOf({ v4, v6, bit }: Conditions): string {
  if (v4.length === 0 && v6.length === 0 && bit === defaultMarkBit) return tablePrefix;
  return `${tablePrefix}_${sha256(JSON.stringify([v4, v6, bit])).slice(0, 12)}`;
}

/** How many rules {@link layout} puts into each chain: fewer mean that somebody flushed it. */
export const rulesOf: Readonly<Record<string, number>> = {
  hostports: 6,
  prerouting: 2,
  output: 2,
  postrouting: 4,
};

/** Everything of a table but its elements. Twice does no harm: chains are filled anew. */
export function layout(table: string, conditions: Conditions): NftText[] {
  const t = identifier(table);
  const mark = 2 ** conditions.bit;
  const unmark = nft`meta mark set meta mark & ${0xffffffff - mark}`;
  const local = (chain: string) => [
    nft`flush chain inet ${t} ${identifier(chain)}`,
    nft`add rule inet ${t} ${identifier(chain)} meta nfproto ipv4 ${condition(conditions.v4.join(" "))} fib daddr type local jump hostports`,
    // Nothing gets from ::1 to another interface: without this, clients that try it first would wait for long.
    nft`add rule inet ${t} ${identifier(chain)} ip6 daddr != ::1 ${condition(conditions.v6.join(" "))} fib daddr type local jump hostports`,
  ];
  return [
    nft`add table inet ${t}`,
    nft`add map inet ${t} exact4 { type inet_proto . ipv4_addr . inet_service : ipv4_addr . inet_service; }`,
    nft`add map inet ${t} exact6 { type inet_proto . ipv6_addr . inet_service : ipv6_addr . inet_service; }`,
    nft`add map inet ${t} any4 { type inet_proto . inet_service : ipv4_addr . inet_service; }`,
    nft`add map inet ${t} any6 { type inet_proto . inet_service : ipv6_addr . inet_service; }`,
    nft`add map inet ${t} masq4 { type ipv4_addr : verdict; }`,
    nft`add map inet ${t} masq6 { type ipv6_addr : verdict; }`,
    nft`add chain inet ${t} hostports`,
    nft`flush chain inet ${t} hostports`,
    // The mark stays on what one of the maps has, where the chain ends.
    nft`add rule inet ${t} hostports meta mark set meta mark | ${mark}`,
    nft`add rule inet ${t} hostports dnat ip to meta l4proto . ip daddr . th dport map @exact4`,
    nft`add rule inet ${t} hostports dnat ip to meta l4proto . th dport map @any4`,
    nft`add rule inet ${t} hostports dnat ip6 to meta l4proto . ip6 daddr . th dport map @exact6`,
    nft`add rule inet ${t} hostports dnat ip6 to meta l4proto . th dport map @any6`,
    nft`add rule inet ${t} hostports ${unmark}`,
    nft`add chain inet ${t} prerouting { type nat hook prerouting priority dstnat; }`,
    ...local("prerouting"),
    nft`add chain inet ${t} output { type nat hook output priority -100; }`,
    ...local("output"),
    // Before iptables, whose rules for the same mark would masquerade everything.
    nft`add chain inet ${t} postrouting { type nat hook postrouting priority 99; }`,
    nft`flush chain inet ${t} postrouting`,
    nft`add rule inet ${t} postrouting meta mark & ${mark} == 0 return`,
    nft`add rule inet ${t} postrouting ${unmark}`,
    nft`add rule inet ${t} postrouting ip daddr vmap @masq4`,
    nft`add rule inet ${t} postrouting ip6 daddr vmap @masq6`,
  ];
}

/**
 * The chain that masquerades connections to a target: those from its own subnet, whose answers would not come back
 * this way, and from the host's loopback, or all. One for each subnet, not for each container.
 */
export function masqChainOf(target: Target, masquerading: "subnet" | "all"): string {
  if (masquerading === "all") return "masq-all";
  return `masq-${subnetOf(target).replaceAll(":", "-").replace("/", "_")}`;
}

const subnetOf = ({ address }: Target): string => cidrText(networkOf(parseCidr(address)!));

/** The chain and its one rule. Twice does no harm. */
export function masqChain(table: string, target: Target, masquerading: "subnet" | "all"): NftText[] {
  const [t, chain] = [identifier(table), identifier(masqChainOf(target, masquerading))];
  const rule =
    masquerading === "all"
      ? nft`masquerade`
      : target.family === 4
        ? nft`ip saddr { 127.0.0.0/8, ${address(subnetOf(target))} } masquerade`
        : nft`ip6 saddr ${address(subnetOf(target))} masquerade`;
  return [
    nft`add chain inet ${t} ${chain}`,
    nft`flush chain inet ${t} ${chain}`,
    nft`add rule inet ${t} ${chain} ${rule}`,
  ];
}

/** The longest parts of a comment that are kept: with them it has at most 127 bytes. */
const [longestNetwork, longestContainer] = [44, 64];

/** How an owner is told in a comment: `NETWORK CONTAINER IFNAME`; of a longer name its hash, after "#". */
export function commentOf({ network, containerId, ifName }: Owner): string {
  const part = (name: string, longest: number) =>
    name.length <= longest ? name : `#${sha256(name).slice(0, 32)}`;
  return `${part(network, longestNetwork)} ${part(containerId, longestContainer)} ${ifName}`;
}

/** Whether a comment tells of an owner on a network. */
export const isOfNetwork = (comment: string, network: string): boolean =>
  comment.startsWith(`${commentOf({ network, containerId: "", ifName: "" }).trimEnd()} `);
