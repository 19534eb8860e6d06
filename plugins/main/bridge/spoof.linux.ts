import { hostInterfaceName } from "@tscni/ip";
import { networkHash, nothing, ownerHash, type Pending, retrying } from "@tscni/masquerade";
import {
  addNftElements,
  countNftRules,
  getNftElement,
  hasNftChain,
  listNftElements,
  type Netlink,
  type NftElementFound,
  openNetfilter,
  openNetfilterIfPresent,
} from "@tscni/netlink";
import {
  address,
  identifier,
  interfaceName,
  listNft,
  NftError,
  type NftText,
  nft,
  quoted,
  startNft,
} from "@tscni/nftables";
import {
  isOnlyOfNetwork,
  KindLock,
  type Owner,
  removeRecord,
  staleRecords,
  type ValidOwner,
  writeRecord,
} from "@tscni/record";
import { CniError, ErrorCode, messageOf } from "@tscni/types";
import * as reference from "./spoof-reference.linux.ts";

/*
 * macspoofchk: a port takes frames from its container's MAC address only. One table for the whole host, in which a
 * frame is looked up twice however many ports there are: is its port guarded, and is this the port's address?
 */

const kind = "macspoofchk";
const table = "tscni_macspoofchk";
const t = nft`bridge ${identifier(table)}`;
const hook = "prerouting";

/** Makes the table, whatever of it is there. */
const skeleton: () => NftText[] = () => [
  nft`add table ${t}`,
  nft`add set ${t} guarded { type ifname; }`,
  nft`add set ${t} allowed { type ifname . ether_addr; }`,
  nft`add chain ${t} ${identifier(hook)} { type filter hook prerouting priority -300; policy accept; }`,
  nft`flush chain ${t} ${identifier(hook)}`,
  nft`add rule ${t} ${identifier(hook)} iifname @guarded iifname . ether saddr != @allowed drop`,
];

/** Starts guarding an attachment's port. Register {@link deleteSpoofCheck} for undo before. */
export function beginSpoofCheck(owner: Owner, mac: string): Pending {
  writeRecord(kind, owner, { mac });
  const port = hostInterfaceName(owner);
  const comment = `${ownerHash(owner)}, mac: ${mac}, net: ${owner.network}`.slice(0, 127);
  using lock = new KindLock(kind);
  using netfilter = openNetfilter();
  const old = guard(netfilter, port);
  const isWhole = countNftRules(netfilter, "bridge", table, hook) === 1;
  if (isWhole && (old === undefined || old.mac === mac)) {
    // The address first: a guarded port without one would drop all.
    addNftElements(netfilter, "bridge", table, [
      { set: "allowed", key: pairKey(port, mac) },
      { set: "guarded", key: portKey(port), comment },
    ]);
    return nothing;
  }
  return startNft(
    [
      ...(isWhole ? [] : skeleton()),
      ...(old === undefined || old.mac === mac ? [] : removal(old)),
      nft`add element ${t} allowed { ${interfaceName(port)} . ${address(mac)} }`,
      nft`add element ${t} guarded { ${interfaceName(port)} comment ${quoted(comment)} }`,
    ],
    lock.fd,
  );
}

/** A name as the kernel compares it: 16 bytes (IFNAMSIZ), of ASCII in our ports' case. */
function portKey(port: string): Uint8Array {
  const key = new Uint8Array(16);
  for (let i = 0; i < port.length; i++) key[i] = port.charCodeAt(i);
  return key;
}

/** A name and the 6 bytes of an address, filled up to a multiple of four. */
function pairKey(port: string, mac: string): Uint8Array {
  const key = new Uint8Array(24);
  key.set(portKey(port));
  for (let i = 0; i < 6; i++) key[16 + i] = Number.parseInt(mac.slice(i * 3, i * 3 + 2), 16);
  return key;
}

/** A guarded port. */
interface Guard {
  port: string;
  mac: string;
  /** Hashes of the network and the attachment, as ownerHash gives them. */
  owner: string;
}

function guard(netfilter: Netlink, port: string): Guard | undefined {
  const found = getNftElement(netfilter, "bridge", table, "guarded", portKey(port));
  return found === undefined ? undefined : guardOf(found);
}

function guardOf({ key, comment = "" }: NftElementFound): Guard {
  let port = "";
  for (let i = 0; i < key.length && key[i] !== 0; i++) port += String.fromCharCode(key[i]!);
  const at = comment.indexOf(", mac: ");
  return { port, mac: comment.slice(at + 7, at + 24), owner: comment.slice(0, 33) };
}

/** Deletes a port's elements, whichever are there: what was just added is there for sure. */
function removal({ port, mac }: Guard): NftText[] {
  const name = nft`{ ${interfaceName(port)} }`;
  const pair = mac.length === 17 ? nft`{ ${interfaceName(port)} . ${address(mac)} }` : undefined;
  return [
    nft`delete element ${t} guarded ${name}`,
    ...(pair ? [nft`add element ${t} allowed ${pair}`, nft`delete element ${t} allowed ${pair}`] : []),
  ];
}

/** Starts taking away what guards an attachment's port, ours and the Go plugin's; nothing there starts nothing. */
export function beginDeleteSpoofCheck(owner: Owner): Pending {
  const begin = () => transaction((netfilter) => deletions(netfilter, owner));
  const pending = retrying(begin, isMismatch);
  return {
    wait() {
      pending.wait();
      // Of several that went at the same time none was the last when it began.
      if (removeRecord(kind, owner) && isOnlyOfNetwork(kind, owner)) retrying(begin, isMismatch).wait();
    },
  };
}

const isMismatch = (error: unknown): boolean => error instanceof NftError && !error.unusable;

function deletions(netfilter: Netlink, owner: Owner): NftText[] {
  const theirs = reference.deletions(netfilter, owner);
  const found = guard(netfilter, hostInterfaceName(owner));
  if (isOnlyOfNetwork(kind, owner) && hasNftChain(netfilter, "bridge", table, hook)) {
    const others =
      listNftElements(netfilter, "bridge", table, "guarded").length - (found === undefined ? 0 : 1);
    if (others === 0) return [...theirs, nft`delete table ${t}`];
  }
  return found === undefined ? theirs : [...theirs, ...removal(found)];
}

/** The same to its end. */
export const deleteSpoofCheck = (owner: Owner): void => beginDeleteSpoofCheck(owner).wait();

function transaction(statementsOf: (netfilter: Netlink) => NftText[]): Pending {
  using netfilter = openNetfilterIfPresent();
  if (netfilter === undefined) return nothing;
  using lock = new KindLock(kind);
  const statements = statementsOf(netfilter);
  return statements.length === 0 ? nothing : startNft(statements, lock.fd);
}

/** CHECK's part: throws unless frames from another address are dropped, by our table or by the Go plugin's chains. */
export function verifySpoofCheck(owner: Owner, mac: string): void {
  using netfilter = openNetfilter();
  const found = guard(netfilter, hostInterfaceName(owner));
  const ruleIsThere = countNftRules(netfilter, "bridge", table, hook) === 1;
  if (ruleIsThere && found?.mac === mac && isAllowed(netfilter, found)) return;
  if (reference.isThere(netfilter, owner)) return;
  throw new CniError(
    ErrorCode.Internal,
    `macspoofchk: the rules for ${owner.ifName} are missing from table bridge ${table}`,
    {
      details: "cnitool repair puts them back",
    },
  );
}

const isAllowed = (netfilter: Netlink, { port, mac }: Guard): boolean =>
  getNftElement(netfilter, "bridge", table, "allowed", pairKey(port, mac)) !== undefined;

/** Takes away, in one transaction, what guards ports of a network's attachments that are not in the list. */
export function gcSpoofChecks(
  network: string,
  valid: readonly ValidOwner[],
  warn: (message: string) => void,
): void {
  const owners = valid.map(({ containerID, ifname }) => ({
    network,
    containerId: containerID,
    ifName: ifname,
  }));
  const hashes = new Set(owners.map(ownerHash));
  let stale: Guard[] = [];
  const begin = () =>
    transaction((netfilter) => {
      const all = listNftElements(netfilter, "bridge", table, "guarded").map(guardOf);
      const start = `${networkHash(network)}-`;
      stale = all.filter(({ owner }) => owner.startsWith(start) && !hashes.has(owner));
      const isEmpty = stale.length === all.length && hasNftChain(netfilter, "bridge", table, hook);
      return isEmpty ? [nft`delete table ${t}`] : stale.flatMap(removal);
    });
  retrying(begin, isMismatch).wait();
  for (const each of staleRecords(kind, network, valid, warn)) removeRecord(kind, each);
  for (const { port, mac } of stale) warn(`gc: removed macspoofchk of ${port} (${mac})`);
}

/** STATUS's part: throws code 50 when nft can't be used here. */
export function spoofCheckStatus(): void {
  try {
    listNft(nft`tables bridge`);
  } catch (error) {
    throw new CniError(ErrorCode.PluginNotAvailable, `macspoofchk: ${messageOf(error)}`, { cause: error });
  }
}
