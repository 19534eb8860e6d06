import { IptablesError, mayHaveChain } from "@tscni/iptables";
import { getLink, openNetfilter, openRoute } from "@tscni/netlink";
import { NftError } from "@tscni/nftables";
import {
  KindLock,
  type Owner,
  type Recorded,
  readRecord,
  removeRecord,
  staleRecords,
  writeRecord,
} from "@tscni/record";
import { joinErrors } from "@tscni/types";
import type { BackendName } from "./conf.ts";
import * as firewalld from "./firewalld.linux.ts";
import * as iptables from "./iptables.linux.ts";
import * as nftables from "./nftables.linux.ts";
import { disownAddresses, isBridgeUsed, isPolicyUsed, leavePolicy, withoutOthers } from "./owners.linux.ts";
import { familiesOf, ofFamily, type Protection, type Wanted } from "./protection.ts";
import { forwardChain } from "./rules.ts";

/** Of our records, one for each attachment that has an address. */
export const kind = "firewall";

type Warn = (message: string) => void;

/** An attachment and what it was given. */
interface Held {
  owner: Owner;
  protection: Protection;
}

/**
 * DEL's part: takes away what the record tells of, without it what `found` (out of the previous result) may have been
 * given, by whichever backend. Nothing known: nothing done, no process started.
 */
export function release(
  owner: Owner,
  found: Wanted | undefined,
  named: BackendName | undefined,
  warn: Warn,
): void {
  const protection = readRecord<Protection>(kind, owner, warn);
  if (protection === undefined && (found === undefined || found.addresses.length === 0)) {
    removeRecord(kind, owner);
    return;
  }
  using lock = new KindLock(kind);
  const held = protection ? [protection] : candidates(found!, named);
  if (
    releaseAll(
      held.map((each) => ({ owner, protection: each })),
      lock.fd,
      warn,
    )
  )
    removeRecord(kind, owner);
}

/** Within an ADD that finds another one before it. */
export function releaseHeld(owner: Owner, protection: Protection, lock: number): void {
  releaseAll([{ owner, protection }], lock, () => {});
}

/** What nobody recorded, such as the reference's rules: wherever a look says that there may be some. */
function candidates(found: Wanted, named: BackendName | undefined): Protection[] {
  const { policy: _, ...wanted } = found;
  const backends: BackendName[] = [];
  if (named === "firewalld" || (named === undefined && firewalld.isRunning())) backends.push("firewalld");
  const present = { ...wanted, addresses: seenAddresses(wanted.addresses) };
  return [
    ...backends.map((backend) => ({ ...wanted, backend })),
    ...(present.addresses.length > 0 ? [{ ...present, backend: "iptables" as const }] : []),
    ...(nftables.hasTable() ? [{ ...wanted, backend: "nftables" as const }] : []),
  ];
}

/** The addresses of the families of which iptables may have rules. */
function seenAddresses(addresses: readonly string[]): string[] {
  using netfilter = openNetfilter();
  const families = familiesOf(addresses).filter((f) => mayHaveChain(netfilter, f, "filter", forwardChain));
  return families.flatMap((family) => ofFamily(addresses, family));
}

/**
 * Takes away what several attachments have, in one transaction for each program. Returns false when a program is not
 * there any more that would have to do it: that is a warning, and the records stay for a later GC.
 */
function releaseAll(held: readonly Held[], lock: number, warn: Warn): boolean {
  const addressesOf = (backend: BackendName): string[] => [
    ...new Set(
      held
        .filter(({ protection }) => protection.backend === backend)
        .flatMap(({ owner, protection }) => withoutOthers(owner, protection.addresses, backend)),
    ),
  ];
  const failures: unknown[] = [];
  let complete = true;
  const attempt = (step: () => void) => {
    try {
      step();
    } catch (error) {
      const unusable = (error instanceof IptablesError || error instanceof NftError) && error.unusable;
      if (!unusable) failures.push(error);
      else warn(`rules may be left behind: ${error.message}`);
      complete = false;
    }
  };
  attempt(() => iptables.deleteRules(addressesOf("iptables"), lock));
  for (const { owner, protection } of held) {
    const { backend, addresses, zone } = protection;
    if (backend === "firewalld")
      attempt(() => firewalld.removeSources(zone, withoutOthers(owner, addresses, backend)));
    if (protection.policy) leavePolicy(owner, protection.policy);
  }
  attempt(() =>
    nftables.deleteElements({ addresses: addressesOf("nftables"), policies: unusedPolicies(held) }, lock),
  );
  const joined = joinErrors(failures);
  if (joined) throw joined;
  if (complete) for (const { owner, protection } of held) disownAddresses(owner, protection.addresses);
  return complete;
}

/** Policies of nftables that their last container has left. Those of iptables stay, as the reference leaves them. */
function unusedPolicies(held: readonly Held[]) {
  const seen = new Set<string>();
  return held
    .filter(({ protection }) => protection.policyBackend === "nftables")
    .flatMap(({ protection }) => protection.policy ?? [])
    .filter(
      (policy) =>
        !isPolicyUsed(policy) && !seen.has(JSON.stringify(policy)) && seen.add(JSON.stringify(policy)),
    )
    .map((policy) => ({ ...policy, isLast: !isBridgeUsed(policy.bridge) }));
}

/** GC's part: takes away what the network's attachments have that are not in the list, and says which. */
export function releaseStale(
  network: string,
  valid: readonly { containerID: string; ifname: string }[],
  warn: Warn,
): void {
  const stale = staleRecords<Protection>(kind, network, valid, warn);
  if (stale.length === 0) return;
  using lock = new KindLock(kind);
  const held = heldOf(stale);
  if (!releaseAll(held, lock.fd, warn)) return;
  forgetBridges(held, lock.fd, warn);
  for (const each of stale) {
    removeRecord(kind, each);
    warn(
      `gc: removed rules of ${each.containerId} ${each.ifName} (${each.data?.addresses.join(", ") ?? "damaged record"})`,
    );
  }
}

/** The rules of iptables for bridges that nobody has a policy for any more, and that are gone themselves. */
function forgetBridges(held: readonly Held[], lock: number, warn: Warn): void {
  const ofIptables = held.filter(({ protection }) => protection.policyBackend === "iptables");
  using host = openRoute();
  const bridges = [
    ...new Set(ofIptables.flatMap(({ protection }) => protection.policy?.bridge ?? [])),
  ].filter((bridge) => !isBridgeUsed(bridge) && getLink(host, { name: bridge }) === undefined);
  if (bridges.length === 0) return;
  for (const family of familiesOf(ofIptables.flatMap(({ protection }) => protection.addresses)))
    iptables.deleteBridgeRules(bridges, family, lock);
  for (const bridge of bridges) warn(`gc: removed the ingress policy of the bridge ${bridge}, which is gone`);
}

const heldOf = (records: readonly Recorded<Protection>[]): Held[] =>
  records.flatMap(({ data, ...owner }) => (data ? [{ owner, protection: data }] : []));

/**
 * Takes away at once what several attachments have whose DELs are about to come. An empty record tells those that
 * there is nothing left to do, so that none of them starts a process.
 */
export function releaseNext(owners: readonly Owner[], warn: Warn): void {
  const held = owners.flatMap((owner) => {
    const protection = readRecord<Protection>(kind, owner);
    return protection && protection.addresses.length > 0 ? [{ owner, protection }] : [];
  });
  if (held.length === 0) return;
  using lock = new KindLock(kind);
  if (!releaseAll(held, lock.fd, warn)) return;
  for (const { owner, protection } of held) {
    const { policy: _, ...rest } = protection;
    writeRecord(kind, owner, { ...rest, addresses: [] } satisfies Protection);
  }
}
