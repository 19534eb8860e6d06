import { bytes, cString } from "../codecs.ts";
import { Attributes } from "../table.ts";
import { netfilterFormat } from "./netfilter.ts";

// linux/netfilter/nf_tables.h, as far as looking needs it.
const NFNL_SUBSYS_NFTABLES = 10;

/** NFT_MSG_{NEW,GET,DEL}CHAIN */
export const nftChainFormat = netfilterFormat(
  "NFT_CHAIN",
  NFNL_SUBSYS_NFTABLES,
  3,
  new Attributes(() => ({ table: [1, cString], name: [3, cString] })),
);

/** NFT_MSG_{NEW,GET,DEL}RULE. A dump gives the rules of `chain`, in their order. */
export const nftRuleFormat = netfilterFormat(
  "NFT_RULE",
  NFNL_SUBSYS_NFTABLES,
  6,
  new Attributes(() => ({ table: [1, cString], chain: [2, cString], userData: [7, bytes] })),
);
