import { mismatch } from "@tscni/ip";
import { countNftRules, hasNftChain, openNetfilter } from "@tscni/netlink";
import {
  address,
  elementsOf,
  interfaceName,
  listNft,
  NftError,
  type NftText,
  nft,
  quoted,
  startNft,
} from "@tscni/nftables";
import type { Owner } from "@tscni/record";
import type { Part } from "./iptables.linux.ts";
import { familyOf, type Policy, type Wanted } from "./protection.ts";

/*
 * A table of our own, which neither a flush of iptables nor a reload of firewalld touches. An address is an element of
 * a set and so is a bridge with a policy: a packet takes as long with one container as with ten thousand.
 */

const tableName = "tscni_firewall";
const table = nft`inet tscni_firewall`;

/** How many rules {@link base} puts into a chain. A chain that has fewer was flushed. */
const ruleCounts = [
  ["forward", 6],
  ["isolation", 3],
] as const;

const base: () => NftText[] = () => [
  nft`add table ${table}`,
  nft`add set ${table} containers4 { type ipv4_addr; }`,
  nft`add set ${table} containers6 { type ipv6_addr; }`,
  nft`add set ${table} bridges { type ifname; }`,
  nft`add set ${table} within { type ifname . ifname; }`,
  nft`add set ${table} isolated { type ifname . ifname; }`,
  nft`add chain ${table} admin`,
  nft`add chain ${table} isolation`,
  nft`add chain ${table} forward { type filter hook forward priority filter; policy accept; }`,
  nft`flush chain ${table} isolation`,
  nft`flush chain ${table} forward`,
  nft`add rule ${table} isolation iifname . oifname @isolated drop`,
  nft`add rule ${table} isolation iifname . oifname @within return`,
  nft`add rule ${table} isolation oifname @bridges drop`,
  nft`add rule ${table} forward iifname @bridges jump isolation`,
  nft`add rule ${table} forward jump admin`,
  nft`add rule ${table} forward ip daddr @containers4 ct state established,related accept`,
  nft`add rule ${table} forward ip saddr @containers4 accept`,
  nft`add rule ${table} forward ip6 daddr @containers6 ct state established,related accept`,
  nft`add rule ${table} forward ip6 saddr @containers6 accept`,
];

/** Whether the table is as {@link base} makes it, told by a look at the kernel without a process. */
function hasBase(): boolean {
  using netfilter = openNetfilter();
  return ruleCounts.every(([chain, count]) => countNftRules(netfilter, "inet", tableName, chain) >= count);
}

/** Whether there is a table of ours at all. */
export function hasTable(): boolean {
  using netfilter = openNetfilter();
  return hasNftChain(netfilter, "inet", tableName, "forward");
}

const setOf = (ip: string): NftText => (familyOf(ip) === 4 ? nft`containers4` : nft`containers6`);

/** Adds an attachment's elements; those that are there already stay. Throws NftError. */
export function addElements(owner: Owner, wanted: Wanted, part: Part, lock: number): void {
  const comment = quoted(`${owner.network} ${owner.containerId} ${owner.ifName}`);
  const statements = hasBase() ? [] : base();
  if (part.addresses)
    for (const ip of wanted.addresses)
      statements.push(nft`add element ${table} ${setOf(ip)} { ${address(ip)} comment ${comment} }`);
  if (part.policy && wanted.policy) statements.push(...policyElements(wanted.policy));
  startNft(statements, lock).wait();
}

function policyElements({ name, bridge }: Policy): NftText[] {
  const br = interfaceName(bridge);
  return [
    ...(name === "isolated" ? [nft`add element ${table} isolated { ${br} . ${br} }`] : []),
    nft`add element ${table} within { ${br} . ${br} }`,
    nft`add element ${table} bridges { ${br} }`,
  ];
}

/** What nobody needs any more. */
export interface Unused {
  addresses: readonly string[];
  /** Policies that no container on the bridge has; `isBridge` when none has any other either. */
  policies: readonly (Policy & { isLast: boolean })[];
}

/** Removes elements in one transaction; what is not there is no error, and neither is a table that is gone. */
export function deleteElements({ addresses, policies }: Unused, lock: number): void {
  const statements = addresses.flatMap((ip) => without(setOf(ip), address(ip)));
  for (const { name, bridge, isLast } of policies) {
    const br = interfaceName(bridge);
    if (name === "isolated") statements.push(...without(nft`isolated`, nft`${br} . ${br}`));
    if (!isLast) continue;
    statements.push(...without(nft`within`, nft`${br} . ${br}`), ...without(nft`bridges`, br));
  }
  if (statements.length === 0) return;
  try {
    startNft(statements, lock).wait();
  } catch (error) {
    if (!(error instanceof NftError && error.problem === "absent")) throw error;
  }
}

/** To delete an element that is absent is an error; added first, it is there in any case. */
const without = (set: NftText, element: NftText): NftText[] => [
  nft`add element ${table} ${set} { ${element} }`,
  nft`delete element ${table} ${set} { ${element} }`,
];

/** CHECK's part: throws CniError naming the first thing that is missing. */
export function verifyElements(wanted: Wanted, part: Part): void {
  const listing = listNft(nft`table ${table}`) ?? [];
  for (const [chain, count] of ruleCounts) {
    const present = listing.filter(({ rule }) => rule?.chain === chain).length;
    if (present < count)
      throw mismatch(`chain ${chain} of nftables' table ${table} has ${present} of ${count} rules`);
  }
  const expect = (set: string, ...key: string[]) => {
    const found = elementsOf(listing, set).some((element) =>
      Array.isArray(element.key) ? element.key.join(" ") === key.join(" ") : element.key === key[0],
    );
    if (!found) throw mismatch(`set ${set} of nftables' table ${table} lacks ${key.join(" . ")}`);
  };
  if (part.addresses) for (const ip of wanted.addresses) expect(String(setOf(ip)), ip);
  if (!part.policy || wanted.policy === undefined) return;
  const { name, bridge } = wanted.policy;
  expect("bridges", bridge);
  expect("within", bridge, bridge);
  if (name === "isolated") expect("isolated", bridge, bridge);
}

/** Throws NftError when nftables can't be used. */
export function verifyUsable(): void {
  listNft(nft`tables`);
}
