import { listNftRules, type Netlink } from "@tscni/netlink";
import { type NftText, nft } from "@tscni/nftables";
import type { Owner } from "@tscni/record";
import { networkHash, ownerHash } from "./names.ts";

/*
 * What the Go plugins leave in nftables, pkg/ip/ipmasq_nftables_linux.go there: a rule for each address, its comment
 * beginning with the hashes of network and attachment.
 */

const table = "cni_plugins_masquerade";
const chain = "masq_checks";

const rules = (netfilter: Netlink) => listNftRules(netfilter, "inet", table, chain);

export const countOf = (netfilter: Netlink, owner: Owner): number =>
  rules(netfilter).filter(({ comment }) => comment?.startsWith(ownerHash(owner))).length;

/** What has to be done to delete an attachment's rules. */
export function deletions(netfilter: Netlink, owner: Owner): NftText[] {
  return removals(netfilter, (comment) => comment.startsWith(ownerHash(owner)));
}

/** What has to be done to delete all rules of a network but those of the owners in the list. */
export function staleDeletions(
  netfilter: Netlink,
  network: string,
  valid: ReadonlySet<string>,
): { statements: NftText[]; removed: string[] } {
  const removed: string[] = [];
  const start = `${networkHash(network)}-`;
  const statements = removals(netfilter, (comment) => {
    const isStale = comment.startsWith(start) && !valid.has(comment.slice(0, 33));
    if (isStale) removed.push(`nftables rule of ${table} (${comment.slice(35)})`);
    return isStale;
  });
  return { statements, removed };
}

/**
 * Deletes the rules with such comments; after the last the whole table, unless a rule comes meanwhile: a chain that has
 * one can't be deleted, and the transaction fails as a whole.
 */
function removals(netfilter: Netlink, isStale: (comment: string) => boolean): NftText[] {
  const all = rules(netfilter);
  const stale = all.filter(({ comment }) => comment !== undefined && isStale(comment));
  const statements = stale.map(
    ({ handle }) => nft`delete rule inet cni_plugins_masquerade masq_checks handle ${Number(handle)}`,
  );
  if (stale.length === 0 || stale.length < all.length) return statements;
  return [
    ...statements,
    nft`flush chain inet cni_plugins_masquerade postrouting`,
    nft`delete chain inet cni_plugins_masquerade postrouting`,
    nft`delete chain inet cni_plugins_masquerade masq_checks`,
    nft`delete table inet cni_plugins_masquerade`,
  ];
}
