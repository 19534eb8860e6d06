import { NetlinkError } from "./error.ts";
import { AF_BRIDGE, AF_INET, AF_INET6, NFPROTO_INET } from "./families.ts";
import { NLM_F_CREATE, NLM_F_EXCL } from "./flags.ts";
import type { MessageOf } from "./message.ts";
import type { Netlink } from "./netlink.ts";
import { NFNL_SUBSYS_NFTABLES, nftChainFormat, nftElementFormat, nftRuleFormat } from "./tables/nftables.ts";

/*
 * Looking at nftables without starting a process; changes go through nft itself (pkg/nftables). iptables-nft's
 * tables and chains are among these, under the names that iptables shows.
 */

export type NftFamily = keyof typeof families;
const families = { ip: AF_INET, ip6: AF_INET6, inet: NFPROTO_INET, bridge: AF_BRIDGE } as const;

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

/** A rule as far as its owner can be told. */
export interface NftRule {
  /** What `delete rule` takes. */
  handle: bigint;
  comment: string | undefined;
}

/** The rules of a chain in their order; none when there is no such chain. */
export function listNftRules(netlink: Netlink, family: NftFamily, table: string, chain: string): NftRule[] {
  return orNone(() =>
    netlink.dump(nftRuleFormat, { family: families[family] }, { table, chain }, `rules of ${chain}`),
  ).map(({ attributes: { handle = 0n, userData } }) => ({ handle, comment: commentIn(userData) }));
}

/** An element of a set or map. */
export interface NftElementFound {
  /** The key's bytes, in network byte order; each part of a concatenation filled up to four. */
  key: Uint8Array;
  comment: string | undefined;
  /** The chain that a verdict map's element jumps or goes to. */
  chain: string | undefined;
  /** A map's value otherwise. */
  value: Uint8Array | undefined;
}

/** The element of a set or map that has this key; undefined when there is none, or no such set. */
export function getNftElement(
  netlink: Netlink,
  family: NftFamily,
  table: string,
  set: string,
  key: Uint8Array,
): NftElementFound | undefined {
  const attributes = { table, set, elements: { list: [{ key: { value: key } }] } };
  const found = orNone(() => [
    netlink.get(nftElementFormat, { family: families[family] }, attributes, `element of ${set}`),
  ]);
  return elementsIn(found)[0];
}

/** An element to be added to a set or map. */
export interface NftElement {
  set: string;
  /** As {@link NftElementFound} has it. */
  key: Uint8Array;
  /** The chain that an element of a map of verdicts goes to. */
  goTo?: string;
  /** What another map leads to, as the key is written. */
  value?: Uint8Array;
  comment?: string;
}

/**
 * Adds elements to sets and maps of a table that are there, all or none, and without the 2 ms that nft takes. One that
 * is there with the same data is fine, and keeps its comment, unless they have to be `created` (EEXIST). Throws
 * NetlinkError.
 */
export function addNftElements(
  netlink: Netlink,
  family: NftFamily,
  table: string,
  elements: readonly NftElement[],
  { created = false }: { created?: boolean } = {},
): void {
  const mode = created ? NLM_F_CREATE | NLM_F_EXCL : NLM_F_CREATE;
  netlink.transaction(NFNL_SUBSYS_NFTABLES, (requests) => {
    for (const { set, key, goTo, value, comment } of elements) {
      const element = {
        key: { value: key },
        data: goTo === undefined ? value && { value } : { verdict: { code: NFT_GOTO, chain: goTo } },
        userData: comment === undefined ? undefined : commentData(comment),
      };
      const header = { family: families[family] };
      const attributes = { table, set, elements: { list: [element] } };
      requests.request(nftElementFormat, "NEW", mode, header, attributes, `element of ${set}`);
    }
  });
}

/** linux/netfilter/nf_tables.h: -4 */
const NFT_GOTO = 0xfffffffc;

function commentData(comment: string): Uint8Array {
  const text = new TextEncoder().encode(comment);
  const data = new Uint8Array(text.length + 3);
  data.set([0, text.length + 1]);
  data.set(text, 2);
  return data;
}

/** All elements of a set or map; none when it is not there. */
export function listNftElements(
  netlink: Netlink,
  family: NftFamily,
  table: string,
  set: string,
): NftElementFound[] {
  return elementsIn(
    orNone(() =>
      netlink.dump(nftElementFormat, { family: families[family] }, { table, set }, `elements of ${set}`),
    ),
  );
}

const elementsIn = (messages: readonly MessageOf<typeof nftElementFormat>[]): NftElementFound[] =>
  messages.flatMap(({ attributes }) =>
    (attributes.elements?.list ?? []).map(({ key, data, userData }) => ({
      key: key?.value ?? new Uint8Array(),
      comment: commentIn(userData),
      chain: data?.verdict?.chain,
      value: data?.value,
    })),
  );

function orNone<T>(look: () => T[]): T[] {
  try {
    return look();
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
}

/** nft keeps comments as user data: type 0, length, text that ends with a NUL (libnftnl/udata.h). */
function commentIn(data: Uint8Array | undefined): string | undefined {
  if (data === undefined) return undefined;
  for (let at = 0; at + 2 <= data.length; at += 2 + data[at + 1]!) {
    if (data[at] !== 0) continue;
    let text = "";
    for (const byte of data.subarray(at + 2, at + 1 + data[at + 1]!)) text += String.fromCharCode(byte);
    return text;
  }
  return undefined;
}
