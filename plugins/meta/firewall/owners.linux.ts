import { type Owner, readRecord, recordedNetworks, removeRecord, writeRecord } from "@tscni/record";
import type { BackendName } from "./conf.ts";
import type { Policy } from "./protection.ts";

/*
 * Rules name addresses and bridges, not containers. What is noted here tells whose an address is now, since a DEL that
 * comes late must not take the rules of the next owner, and which bridges are still in use.
 */

const addressKind = "firewall-address";

/** A file for each address, whoever has it. */
const entryOf = (address: string): Owner => ({ network: "all", containerId: address, ifName: "" });

interface AddressOwner {
  owner: string;
  backend: BackendName;
}

const textOf = ({ network, containerId, ifName }: Owner): string => `${network}/${containerId}:${ifName}`;

export function ownAddresses(owner: Owner, addresses: readonly string[], backend: BackendName): void {
  for (const address of addresses)
    writeRecord(addressKind, entryOf(address), { owner: textOf(owner), backend } satisfies AddressOwner);
}

/** The addresses that no other attachment has by now, by this backend: their rules may go. */
export function withoutOthers(owner: Owner, addresses: readonly string[], backend: BackendName): string[] {
  return addresses.filter((address) => {
    const entry = readRecord<AddressOwner>(addressKind, entryOf(address));
    return entry === undefined || entry.owner === textOf(owner) || entry.backend !== backend;
  });
}

export function disownAddresses(owner: Owner, addresses: readonly string[]): void {
  for (const address of addresses) {
    const entry = readRecord<AddressOwner>(addressKind, entryOf(address));
    if (entry?.owner === textOf(owner)) removeRecord(addressKind, entryOf(address));
  }
}

const policyKind = (name: Policy["name"]): string => `firewall-${name}`;

/** A file for each container, in a folder for each bridge, which goes with the last file. */
const userOf = ({ containerId, ifName }: Owner, { bridge }: Policy): Owner => ({
  network: bridge,
  containerId,
  ifName,
});

export function usePolicy(owner: Owner, policy: Policy): void {
  writeRecord(policyKind(policy.name), userOf(owner, policy), { network: owner.network });
}

export function leavePolicy(owner: Owner, policy: Policy): void {
  removeRecord(policyKind(policy.name), userOf(owner, policy));
}

/** Whether some container has this policy on its bridge. */
export const isPolicyUsed = ({ name, bridge }: Policy): boolean =>
  recordedNetworks(policyKind(name)).includes(bridge);

/** Whether some container has any policy on a bridge. */
export const isBridgeUsed = (bridge: string): boolean =>
  (["same-bridge", "isolated"] as const).some((name) => isPolicyUsed({ name, bridge }));
