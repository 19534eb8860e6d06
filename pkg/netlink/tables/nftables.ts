import { bytes, cString, u32be, u64be } from "../codecs.ts";
import { Attributes, each } from "../table.ts";
import { netfilterFormat } from "./netfilter.ts";

// linux/netfilter/nf_tables.h, as far as looking needs it.
export const NFNL_SUBSYS_NFTABLES = 10;

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
  new Attributes(() => ({
    table: [1, cString],
    chain: [2, cString],
    handle: [3, u64be],
    userData: [7, bytes],
  })),
);

const verdict = new Attributes(() => ({ code: [1, u32be], chain: [2, cString] }));
const element = new Attributes(() => ({
  key: [1, new Attributes(() => ({ value: [1, bytes] }))],
  data: [2, new Attributes(() => ({ value: [1, bytes], verdict: [2, verdict] }))],
  userData: [6, bytes],
}));

/** NFT_MSG_{NEW,GET,DEL}SETELEM. A GET gives the elements of the keys asked for, a dump all of `set`. */
export const nftElementFormat = netfilterFormat(
  "NFT_SETELEM",
  NFNL_SUBSYS_NFTABLES,
  12,
  new Attributes(() => ({
    table: [1, cString],
    set: [2, cString],
    elements: [3, new Attributes(() => ({ list: [1, each(element)] }))],
  })),
);
