import type { Cidr } from "@tscni/addr";
import { type Backend, IptablesError, mayHaveChain, onBackend, readTable } from "@tscni/iptables";
import { openNetfilter, openNetfilterIfPresent } from "@tscni/netlink";
import { listNft, NftError, nft, startNft } from "@tscni/nftables";
import {
  isOnlyOfNetwork,
  KindLock,
  listRecords,
  type Owner,
  readRecord,
  removeRecord,
  staleRecords,
  type ValidOwner,
  writeRecord,
} from "@tscni/record";
import { CniError, ErrorCode, messageOf } from "@tscni/types";
import * as iptables from "./iptables.linux.ts";
import { chainOf, ownerHash } from "./names.ts";
import * as own from "./nftables.linux.ts";
import * as reference from "./reference.linux.ts";
import { begun, cidrsOf, type MasqueradeRecord, nothing, type Pending, retrying, together } from "./types.ts";

export type { Backend } from "@tscni/iptables";

/*
 * Masquerading (source NAT to the host's own address) of what containers send out of their subnet. What the
 * beginX functions start goes on beside the caller's other work, until the `wait` of what they return.
 */

const kind = "masquerade";
const families = [4, 6] as const;

/** Addresses as results have them: `10.1.0.5/24`. */
type Addresses = readonly string[];

/**
 * Starts masquerading an attachment's addresses, by the backend that is named or else the one that the reference would
 * take. Register {@link deleteMasquerade} for undo before. The wait throws IptablesError or NftError.
 */
export function beginMasquerade(owner: Owner, addresses: Addresses, backend: Backend | undefined): Pending {
  const cidrs = cidrsOf(addresses);
  // An ADD without a DEL before it, or after one that was killed: nothing of the old one may stay.
  if (readRecord(kind, owner) !== undefined) deleteMasquerade(owner, undefined);
  const record = (which: Backend) =>
    writeRecord(kind, owner, { backend: which, addresses } satisfies MasqueradeRecord);
  return waitable(backend, {
    iptables() {
      record("iptables");
      return together(iptables.beginAdd(owner, cidrs));
    },
    nftables() {
      record("nftables");
      return beginNft(owner, cidrs);
    },
  });
}

/** Begins on a backend; where iptables turns out to be unusable only at the end, goes on with the other one. */
function waitable(backend: Backend | undefined, begin: Readonly<Record<Backend, () => Pending>>): Pending {
  if (backend !== undefined) return begin[backend]();
  const first = onBackend(undefined, begin);
  if (first.backend === "nftables") return first.result;
  return {
    wait() {
      onBackend(undefined, {
        iptables: () => first.result.wait(),
        nftables: () => begin.nftables().wait(),
      });
    },
  };
}

/** Elements alone go into the kernel at once; whatever takes more is nft's work. */
function beginNft(owner: Owner, cidrs: readonly Cidr[]): Pending {
  using lock = new KindLock(kind);
  using netfilter = openNetfilter();
  const missing = own.additions(netfilter, owner, cidrs);
  if (missing.statements.length > 0) return startNft(own.additionStatements(missing), lock.fd);
  own.addElements(netfilter, missing.elements);
  return nothing;
}

/** Puts back what is missing of an attachment's rules. */
export function repairMasquerade(owner: Owner, addresses: Addresses, backend: Backend | undefined): void {
  const cidrs = cidrsOf(addresses);
  const named = readRecord<MasqueradeRecord>(kind, owner)?.backend ?? backend;
  onBackend(named, {
    iptables() {
      writeRecord(kind, owner, { backend: "iptables", addresses } satisfies MasqueradeRecord);
      iptables.ensureAll(owner, cidrs);
    },
    nftables() {
      writeRecord(kind, owner, { backend: "nftables", addresses } satisfies MasqueradeRecord);
      beginNft(owner, cidrs).wait();
    },
  });
}

/**
 * Starts removing whatever masquerades an attachment's addresses, in both backends, ours and the Go plugins'.
 * `addresses` are those of the previous result, if there is one; our own record comes first. Starts no process when
 * neither the record nor a look at the kernel shows anything. End it before the addresses are given back to IPAM.
 */
export function beginDeleteMasquerade(owner: Owner, addresses: Addresses | undefined): Pending {
  const record = readRecord<MasqueradeRecord>(kind, owner);
  const given = record?.addresses ?? addresses;
  const cidrs = given === undefined || given.length === 0 ? undefined : cidrsOf(given);
  const others = () => otherAddresses(owner);
  const pending: Pending[] = [];
  if (record?.backend === "iptables")
    pending.push(orNothingToDo(owner, () => together(iptables.beginDelete(owner, cidrs ?? [], others))));
  else pending.push(begun(() => deleteFoundChains(owner, cidrs, others)));
  pending.push(beginDeleteNft(owner, cidrs));
  return {
    wait() {
      together(pending).wait();
      removeRecord(kind, owner);
      // Of several that went at the same time none was the last when it began.
      if (record?.backend === "nftables" && isOnlyOfNetwork(kind, owner)) beginDeleteNft(owner, []).wait();
    },
  };
}

/**
 * Removes what our records tell of several attachments, in one transaction for each of iptables, ip6tables and
 * nftables. What else there may be of them is left to {@link deleteMasquerade}.
 */
export function deleteMasquerades(owners: readonly Owner[]): void {
  const recorded: Masqueraded[] = [];
  for (const owner of owners) {
    const record = readRecord<MasqueradeRecord>(kind, owner);
    if (record !== undefined) recorded.push({ owner, record, cidrs: cidrsOf(record.addresses) });
  }
  const of = (backend: Backend) => recorded.filter(({ record }) => record.backend === backend);
  const pending = [...iptables.beginDeleteMany(of("iptables")), beginDeleteManyNft(of("nftables"))];
  together(pending).wait();
  for (const { owner } of recorded) removeRecord(kind, owner);
}

interface Masqueraded {
  owner: Owner;
  record: MasqueradeRecord;
  cidrs: Cidr[];
}

function beginDeleteManyNft(owners: readonly Masqueraded[]): Pending {
  if (owners.length === 0) return nothing;
  using lock = new KindLock(kind);
  using netfilter = openNetfilter();
  const statements = owners.flatMap(({ owner, cidrs }) => own.deletions(netfilter, owner, cidrs, false));
  return statements.length === 0 ? nothing : startNft(statements, lock.fd);
}

/** {@link beginDeleteMasquerade} to its end. */
export function deleteMasquerade(owner: Owner, addresses: Addresses | undefined): void {
  beginDeleteMasquerade(owner, addresses).wait();
}

/** Where iptables can't be used (any more): an error only if there is something to delete. */
function orNothingToDo(owner: Owner, begin: () => Pending): Pending {
  const pending = begun(begin);
  return {
    wait() {
      try {
        pending.wait();
      } catch (error) {
        if (!(error instanceof IptablesError && error.unusable) || chainFamilies(owner).length > 0)
          throw error;
      }
    },
  };
}

/** The families in which the container may have a chain, as far as can be seen without iptables. */
function chainFamilies(owner: Owner): (4 | 6)[] {
  using netfilter = openNetfilterIfPresent();
  if (netfilter === undefined) return [];
  return families.filter((family) => mayHaveChain(netfilter, family, "nat", chainOf(owner)));
}

/** Without a record of ours: what the Go plugin made, or what is left when /run was emptied. */
function deleteFoundChains(owner: Owner, cidrs: readonly Cidr[] | undefined, others: () => Cidr[]): Pending {
  const present = chainFamilies(owner);
  if (present.length === 0) return nothing;
  return {
    wait() {
      for (const family of present) iptables.deleteFound(owner, family, cidrs, others());
    },
  };
}

function beginDeleteNft(owner: Owner, cidrs: readonly Cidr[] | undefined): Pending {
  return retrying(() => {
    using netfilter = openNetfilterIfPresent();
    if (netfilter === undefined) return nothing;
    using lock = new KindLock(kind);
    const statements = [
      ...own.deletions(netfilter, owner, cidrs, isOnlyOfNetwork(kind, owner)),
      ...reference.deletions(netfilter, owner),
    ];
    return statements.length === 0 ? nothing : startNft(statements, lock.fd);
  }, isMismatch);
}

/** Whether nft refused because the kernel's state was not as we had seen it. */
const isMismatch = (error: unknown): boolean => error instanceof NftError && !error.unusable;

/** The addresses of the container's other interfaces on the network, whose rules share its chain. */
const otherAddresses = ({ network, containerId, ifName }: Owner): Cidr[] =>
  listRecords<MasqueradeRecord>(kind, network)
    .filter((each) => each.containerId === containerId && each.ifName !== ifName)
    .flatMap(({ data }) => cidrsOf(data?.addresses ?? []));

/** CHECK's part: throws CniError unless every address is masqueraded, in whichever backend has it. */
export function verifyMasquerade(owner: Owner, addresses: Addresses, backend: Backend | undefined): void {
  const cidrs = cidrsOf(addresses);
  using netfilter = openNetfilterIfPresent();
  const named = readRecord<MasqueradeRecord>(kind, owner)?.backend;
  if (named === undefined && netfilter && reference.countOf(netfilter, owner) >= cidrs.length) return;
  onBackend(named ?? backend, {
    iptables: () => iptables.verify(owner, cidrs),
    nftables: () => own.verify(netfilter ?? openNetfilter(), owner, cidrs),
  });
}

/**
 * Removes what masquerades addresses of a network's attachments that are not in the list, ours and the Go plugins', in
 * one transaction for each of iptables, ip6tables and nftables. Says what it removed. iptables, which takes reading a
 * whole table, is looked at if masquerading is `configured` or a record names somebody stale.
 */
export function gcMasquerade(
  network: string,
  valid: readonly ValidOwner[],
  configured: boolean,
  warn: (message: string) => void,
): void {
  const stale = staleRecords<MasqueradeRecord>(kind, network, valid, warn);
  const staleAddresses = (containerId: string) =>
    stale.flatMap((each) => (each.containerId === containerId ? cidrsOf(each.data?.addresses ?? []) : []));
  const validIds = new Set(valid.map(({ containerID }) => containerID));
  const hashes = new Set(
    valid.map(({ containerID, ifname }) => ownerHash({ network, containerId: containerID, ifName: ifname })),
  );
  const removed: string[] = [];
  if ((configured || stale.length > 0) && mayHaveRules())
    removed.push(...iptables.gc(network, validIds, staleAddresses));
  removed.push(...gcNft(network, hashes));
  for (const each of stale) removeRecord(kind, each);
  for (const what of removed) warn(`gc: removed ${what}`);
}

/** Whether iptables has a table nat at all; its hook is there as soon as anybody wrote to it. */
function mayHaveRules(): boolean {
  using netfilter = openNetfilterIfPresent();
  return (
    netfilter === undefined ||
    families.some((family) => mayHaveChain(netfilter, family, "nat", "POSTROUTING"))
  );
}

function gcNft(network: string, valid: ReadonlySet<string>): string[] {
  let removed: string[] = [];
  retrying(() => {
    using netfilter = openNetfilterIfPresent();
    if (netfilter === undefined) return nothing;
    using lock = new KindLock(kind);
    const mine = own.staleDeletions(netfilter, network, valid);
    const theirs = reference.staleDeletions(netfilter, network, valid);
    removed = [...mine.removed, ...theirs.removed];
    const statements = [...mine.statements, ...theirs.statements];
    return statements.length === 0 ? nothing : startNft(statements, lock.fd);
  }, isMismatch).wait();
  return removed;
}

/** STATUS's part: throws code 50 when the backend that is named, or without a name both, can't be used here. */
export function masqueradeStatus(backend: Backend | undefined): void {
  try {
    onBackend<unknown>(backend, {
      iptables: () => readTable(4, "nat"),
      nftables: () => listNft(nft`tables`),
    });
  } catch (error) {
    throw new CniError(ErrorCode.PluginNotAvailable, `ipMasq: ${messageOf(error)}`, { cause: error });
  }
}
