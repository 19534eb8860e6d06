import { NetlinkError } from "./error.ts";
import { AF_INET, AF_INET6, NFPROTO_INET } from "./families.ts";
import type { Netlink } from "./netlink.ts";
import { nftChainFormat, nftRuleFormat } from "./tables/nftables.ts";

/*
 * Looking at nftables without starting a process; changes go through nft itself (pkg/nftables). iptables-nft's
 * tables and chains are among these, under the names that iptables shows.
 */

export type NftFamily = keyof typeof families;
const families = { ip: AF_INET, ip6: AF_INET6, inet: NFPROTO_INET } as const;

/** Whether a chain is there; false as well where the kernel has no nftables. */
export function hasNftChain(netlink: Netlink, family: NftFamily, table: string, name: string): boolean {
  try {
    netlink.get(nftChainFormat, { family: families[family] }, { table, name }, `chain ${name}`);
    return true;
  } catch (error) {
    if (isAbsent(error)) return false;
    throw error;
  }
}

/** How many rules a chain has; 0 when there is no such chain. */
export function countNftRules(netlink: Netlink, family: NftFamily, table: string, chain: string): number {
  try {
    return netlink.dump(nftRuleFormat, { family: families[family] }, { table, chain }, `rules of ${chain}`)
      .length;
  } catch (error) {
    if (isAbsent(error)) return 0;
    throw error;
  }
}

/** ENOENT: no such object. EINVAL, EOPNOTSUPP: no such subsystem in this kernel. */
const isAbsent = (error: unknown): boolean =>
  error instanceof NetlinkError && ["ENOENT", "EINVAL", "EOPNOTSUPP"].includes(error.code);
