import { type Cidr, ipBytes, ipOfBytes, ipText } from "@tscni/addr";
import {
  addNftElements,
  countNftRules,
  getNftElement,
  hasNftChain,
  listNftElements,
  type Netlink,
} from "@tscni/netlink";
import { address, identifier, type NftText, nft, quoted } from "@tscni/nftables";
import type { Owner } from "@tscni/record";
import { CniError, ErrorCode } from "@tscni/types";
import { networkHash, nftCommentOf, ownerHash, subnetChain, subnetText } from "./names.ts";

/*
 * Our table: a map for each family from a container's address to the chain of its subnet, and in that chain one rule,
 * which masquerades what leaves the subnet. A packet is looked up once, however many containers there are; an ADD adds
 * one element an address. An element's comment names its owner. docs/decisions/0011
 */

const table = "tscni_masquerade";
const hook = "postrouting";
const hookRules = 4;
const families = [4, 6] as const;
const mapOf = (family: 4 | 6): string => `sources${family}`;

const t = nft`inet ${identifier(table)}`;

/** Makes the table, its maps and its chains, whatever of it is there. The flush of what is there makes it exact. */
function skeleton(): NftText[] {
  const chain = nft`${t} ${identifier(hook)}`;
  return [
    nft`add table ${t}`,
    nft`add map ${t} ${identifier(mapOf(4))} { type ipv4_addr : verdict; }`,
    nft`add map ${t} ${identifier(mapOf(6))} { type ipv6_addr : verdict; }`,
    nft`add chain ${chain} { type nat hook postrouting priority 100; policy accept; }`,
    nft`flush chain ${chain}`,
    nft`add rule ${chain} ip daddr 224.0.0.0/4 return`,
    nft`add rule ${chain} ip6 daddr ff00::/8 return`,
    nft`add rule ${chain} ip saddr vmap @${identifier(mapOf(4))}`,
    nft`add rule ${chain} ip6 saddr vmap @${identifier(mapOf(6))}`,
  ];
}

function subnet(cidr: Cidr): NftText[] {
  const chain = nft`${t} ${identifier(subnetChain(cidr))}`;
  const to = cidr.ip.family === 4 ? nft`ip daddr` : nft`ip6 daddr`;
  return [
    nft`add chain ${chain}`,
    nft`flush chain ${chain}`,
    nft`add rule ${chain} ${to} != ${address(subnetText(cidr))} masquerade`,
  ];
}

const elementOf = (cidr: Cidr): NftText => nft`{ ${address(ipText(cidr.ip))} }`;
const deletion = (cidr: Cidr): NftText =>
  nft`delete element ${t} ${identifier(mapOf(cidr.ip.family))} ${elementOf(cidr)}`;

const find = (netfilter: Netlink, { ip }: Cidr) =>
  getNftElement(netfilter, "inet", table, mapOf(ip.family), ipBytes(ip));

const isOurs = (owner: Owner, found: { comment: string | undefined } | undefined): boolean =>
  found?.comment?.startsWith(ownerHash(owner)) ?? false;

/** What is missing for an attachment's addresses to be masqueraded. */
export interface Additions {
  /** To be done first, in one transaction with the elements: empty where table and chains are there. */
  statements: NftText[];
  /** The addresses' elements. */
  elements: { cidr: Cidr; chain: string; comment: string }[];
}

/**
 * What has to be done for an attachment's addresses to be masqueraded; nothing when all is there. An address that has
 * an older owner changes hands: IPAM gave it to the new one. Hold the lock from here to the transaction.
 */
export function additions(netfilter: Netlink, owner: Owner, cidrs: readonly Cidr[]): Additions {
  const statements: NftText[] = [];
  const elements: Additions["elements"] = [];
  const rules = (chain: string) => countNftRules(netfilter, "inet", table, chain);
  if (rules(hook) !== hookRules) statements.push(...skeleton());
  const chains = new Set<string>();
  for (const cidr of cidrs) {
    const chain = subnetChain(cidr);
    if (!chains.has(chain) && rules(chain) !== 1) statements.push(...subnet(cidr));
    chains.add(chain);
    const found = find(netfilter, cidr);
    if (isOurs(owner, found) && found?.chain === chain) continue;
    if (found !== undefined) statements.push(deletion(cidr));
    elements.push({ cidr, chain, comment: nftCommentOf(owner) });
  }
  return { statements, elements };
}

/** All of it as statements for nft. */
export const additionStatements = ({ statements, elements }: Additions): NftText[] => [
  ...statements,
  ...elements.map(({ cidr, chain, comment }) => {
    const key = nft`${address(ipText(cidr.ip))} comment ${quoted(comment)}`;
    const map = identifier(mapOf(cidr.ip.family));
    return nft`add element ${t} ${map} { ${key} : goto ${identifier(chain)} }`;
  }),
];

/** Adds the elements alone, where everything else is there. Throws NetlinkError. */
export function addElements(netfilter: Netlink, elements: Additions["elements"]): void {
  addNftElements(
    netfilter,
    "inet",
    table,
    elements.map(({ cidr: { ip }, chain, comment }) => ({
      set: mapOf(ip.family),
      key: ipBytes(ip),
      goTo: chain,
      comment,
    })),
  );
}

/**
 * What has to be done to delete an attachment's elements, and no other's. Without `cidrs` (undefined) all are looked
 * through. With `tidy` what nobody uses any more goes, too: chains of subnets, and the table after the last.
 */
export function deletions(
  netfilter: Netlink,
  owner: Owner,
  cidrs: readonly Cidr[] | undefined,
  tidy: boolean,
): NftText[] {
  if (!hasNftChain(netfilter, "inet", table, hook)) return [];
  if (tidy || cidrs === undefined)
    return removals(netfilter, (comment) => comment.startsWith(ownerHash(owner)));
  return cidrs.filter((cidr) => isOurs(owner, find(netfilter, cidr))).map(deletion);
}

/** What has to be done to delete all elements of a network but those of the owners in the list. */
export function staleDeletions(
  netfilter: Netlink,
  network: string,
  valid: ReadonlySet<string>,
): { statements: NftText[]; removed: string[] } {
  const removed: string[] = [];
  const ours = networkHash(network);
  const statements = removals(netfilter, (comment) => {
    const hashes = comment.slice(0, 33);
    const isStale = comment.startsWith(`${ours}-`) && !valid.has(hashes);
    if (isStale) removed.push(`nftables element of ${table} (${comment.slice(35)})`);
    return isStale;
  });
  return { statements, removed };
}

/** Deletes the elements with such comments; the table when none is left, or else the chains of subnets without any. */
function removals(netfilter: Netlink, isStale: (comment: string) => boolean): NftText[] {
  const deleted: { cidr: Cidr; chain: string | undefined }[] = [];
  const used = new Set<string | undefined>();
  let kept = 0;
  for (const family of families) {
    for (const { key, chain, comment } of listNftElements(netfilter, "inet", table, mapOf(family))) {
      if (comment !== undefined && isStale(comment))
        deleted.push({ cidr: { ip: ipOfBytes(key), prefix: 0 }, chain });
      else {
        used.add(chain);
        kept++;
      }
    }
  }
  if (kept === 0) return hasNftChain(netfilter, "inet", table, hook) ? [nft`delete table ${t}`] : [];
  const unused = new Set(deleted.map(({ chain }) => chain).filter((chain) => !used.has(chain)));
  return [
    ...deleted.map(({ cidr }) => deletion(cidr)),
    ...[...unused].flatMap((chain) =>
      chain === undefined ? [] : [nft`delete chain ${t} ${identifier(chain)}`],
    ),
  ];
}

/** CHECK's part: throws for an address that is not masqueraded. */
export function verify(netfilter: Netlink, owner: Owner, cidrs: readonly Cidr[]): void {
  const missing = (what: string) =>
    new CniError(ErrorCode.Internal, `ipMasq: ${what} from table inet ${table}`, {
      details: "cnitool repair puts it back",
    });
  if (countNftRules(netfilter, "inet", table, hook) !== hookRules)
    throw missing(`rules of chain ${hook} are missing`);
  for (const cidr of cidrs) {
    const chain = subnetChain(cidr);
    const found = find(netfilter, cidr);
    if (!isOurs(owner, found)) throw missing(`the element for ${ipText(cidr.ip)} is missing`);
    if (found?.chain !== chain || countNftRules(netfilter, "inet", table, chain) !== 1)
      throw missing(`the rule for the subnet ${subnetText(cidr)} is missing`);
  }
}
