import { onBackend } from "@tscni/iptables";
import { KindLock, type Owner, readRecord, writeRecord } from "@tscni/record";
import type { BackendName } from "./conf.ts";
import * as firewalld from "./firewalld.linux.ts";
import * as iptables from "./iptables.linux.ts";
import * as nftables from "./nftables.linux.ts";
import { ownAddresses, usePolicy } from "./owners.linux.ts";
import type { Protection, Wanted } from "./protection.ts";
import { kind, releaseHeld } from "./release.linux.ts";

const onlyPolicy = { addresses: false, policy: true };
const all = { addresses: true, policy: true };

/**
 * Does for an attachment what is wanted, by the backend that is named, or else as the reference chooses: firewalld if it
 * runs, iptables unless that is unusable; then nftables. What is there already stays. Recorded before it is done.
 */
export function protect(owner: Owner, wanted: Wanted, named: BackendName | undefined): void {
  using lock = new KindLock(kind);
  let before = readRecord<Protection>(kind, owner);
  const work = (backend: BackendName) => {
    // An ADD without a DEL before it: nothing of another address, policy or backend may stay.
    if (before !== undefined && !isSame(before, wanted, backend)) {
      releaseHeld(owner, before, lock.fd);
      before = undefined;
    }
    const policyBackend = backend === "firewalld" ? before?.policyBackend : backend;
    record(owner, { ...wanted, backend, ...(policyBackend ? { policyBackend } : {}) });
    if (backend === "iptables") iptables.addRules(wanted, all, lock.fd);
    else if (backend === "nftables") nftables.addElements(owner, wanted, all, lock.fd);
    else protectByFirewalld(owner, wanted, lock.fd);
  };
  const chosen = named ?? (firewalld.isRunning() ? "firewalld" : undefined);
  if (chosen !== undefined) work(chosen);
  else onBackend(undefined, { iptables: () => work("iptables"), nftables: () => work("nftables") });
}

/** firewalld takes the addresses; policies it has none of, so that they are kept beside it. */
function protectByFirewalld(owner: Owner, wanted: Wanted, lock: number): void {
  firewalld.addSources(wanted.zone, wanted.addresses);
  if (wanted.policy === undefined) return;
  const note = (policyBackend: "iptables" | "nftables") =>
    record(owner, { ...wanted, backend: "firewalld", policyBackend });
  onBackend(undefined, {
    iptables() {
      note("iptables");
      iptables.addRules(wanted, onlyPolicy, lock);
    },
    nftables() {
      note("nftables");
      nftables.addElements(owner, wanted, onlyPolicy, lock);
    },
  });
}

function record(owner: Owner, protection: Protection): void {
  writeRecord(kind, owner, protection);
  ownAddresses(owner, protection.addresses, protection.backend);
  if (protection.policy) usePolicy(owner, protection.policy);
}

function isSame(
  before: Protection,
  { addresses, adminChain, zone, policy }: Wanted,
  backend: BackendName,
): boolean {
  const old = [before.addresses, before.adminChain, before.zone, before.policy, before.backend];
  return JSON.stringify(old) === JSON.stringify([addresses, adminChain, zone, policy, backend]);
}

/** Puts back what is missing, where it was. */
export function reprotect(owner: Owner, wanted: Wanted, named: BackendName | undefined): void {
  protect(owner, wanted, readRecord<Protection>(kind, owner)?.backend ?? named);
}

/** CHECK's part: looks where the rules are, or would be if there were no record. Throws CniError; changes nothing. */
export function verifyProtection(owner: Owner, wanted: Wanted, named: BackendName | undefined): void {
  const recorded = readRecord<Protection>(kind, owner);
  const verify = {
    iptables: () => iptables.verifyRules(wanted, all),
    nftables: () => nftables.verifyElements(wanted, all),
  };
  const chosen = recorded?.backend ?? named ?? (firewalld.isRunning() ? "firewalld" : undefined);
  if (chosen !== "firewalld") {
    onBackend(chosen, verify);
    return;
  }
  firewalld.verifySources(wanted.zone, wanted.addresses);
  if (wanted.policy === undefined) return;
  onBackend(recorded?.policyBackend, {
    iptables: () => iptables.verifyRules(wanted, onlyPolicy),
    nftables: () => nftables.verifyElements(wanted, onlyPolicy),
  });
}

/** STATUS's part. Throws when no backend can be used, of which one is enough without a name. */
export function verifyUsable(named: BackendName | undefined, hasPolicy: boolean): void {
  const isFirewalld = named === "firewalld" || (named === undefined && firewalld.isRunning());
  if (isFirewalld) {
    if (!firewalld.isRunning()) throw new TypeError("firewalld does not run, or not on the D-Bus system bus");
    if (!hasPolicy) return;
  }
  onBackend(isFirewalld ? undefined : (named as "iptables" | "nftables" | undefined), {
    iptables: iptables.verifyUsable,
    nftables: nftables.verifyUsable,
  });
}
