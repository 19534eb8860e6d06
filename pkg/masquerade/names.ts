import { type Cidr, cidrText, ipText, networkOf } from "@tscni/addr";
import type { Owner } from "@tscni/record";
import { sha512 } from "@tscni/sys";

/*
 * The names that the Go plugins give what they make, pkg/utils/utils.go and pkg/ip/ipmasq_nftables_linux.go there:
 * either of us finds and removes what the other left.
 */

/** The chain of a container on a network in iptables' table nat. The interface is not in it. */
export const chainOf = ({ network, containerId }: Pick<Owner, "network" | "containerId">): string =>
  `CNI-${sha512(network + containerId)}`.slice(0, 28);

/** The comment of each of its rules. */
export const iptablesCommentOf = ({ network, containerId }: Pick<Owner, "network" | "containerId">): string =>
  `name: ${JSON.stringify(network)} id: ${JSON.stringify(containerId)}`;

/** What comments of rules and elements in nftables begin with, for all of a network. */
export const networkHash = (network: string): string => sha512(network).slice(0, 16);

/** What the comments for one attachment begin with. */
export const ownerHash = ({ network, containerId, ifName }: Owner): string =>
  `${networkHash(network)}-${sha512(`${ifName}:${containerId}`).slice(0, 16)}`;

/** The whole comment; nft keeps no more than 127 bytes of it, and has no way to write a quote. */
export function nftCommentOf(owner: Owner): string {
  const { network, containerId, ifName } = owner;
  let printable = "";
  for (const c of ifName) if (c >= " " && c < "\x7f" && c !== '"' && c !== "\\") printable += c;
  return `${ownerHash(owner)}, net: ${network}, if: ${printable}, id: ${containerId}`.slice(0, 127);
}

/** The chain of a subnet in our nftables table, such as `net-10.1.0.0-24`, which gives addresses back as they are. */
export function subnetChain(cidr: Cidr): string {
  const { ip, prefix } = networkOf(cidr);
  return `net${ip.family}-${ipText(ip).replaceAll(":", ".")}-${prefix}`;
}

export const subnetText = (cidr: Cidr): string => cidrText(networkOf(cidr));
