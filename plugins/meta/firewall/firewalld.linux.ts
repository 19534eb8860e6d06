import { type Bus, DbusError, openSystemBus } from "@tscni/dbus";
import { mismatch } from "@tscni/ip";
import { CniError, ErrorCode } from "@tscni/types";
import { withPrefix } from "./protection.ts";

/* Addresses as sources of a firewalld zone, for as long as firewalld runs and does not reload. */

const firewalldName = "org.fedoraproject.FirewallD1";

/** A method of its zones; an address is "source" there. */
const zoneCall = (bus: Bus, member: string, zone: string, address: string) =>
  bus.call({
    destination: firewalldName,
    path: "/org/fedoraproject/FirewallD1",
    interface: `${firewalldName}.zone`,
    member,
    args: [zone, withPrefix(address)],
  });

/** Whether firewalld runs: nobody asks it to start. A bus that refuses us counts as none. */
export function isRunning(): boolean {
  try {
    using bus = openSystemBus();
    return bus?.hasOwner(firewalldName) ?? false;
  } catch (error) {
    if (error instanceof DbusError) return false;
    throw error;
  }
}

function openBus(): Bus {
  const bus = openSystemBus();
  if (bus === undefined)
    throw new CniError(ErrorCode.Internal, "firewalld can't be asked: the D-Bus system bus is not there");
  return bus;
}

/** Puts addresses into a zone; one that is in it already stays. Throws DbusError with firewalld's own words. */
export function addSources(zone: string, addresses: readonly string[]): void {
  using bus = openBus();
  for (const address of addresses) {
    try {
      zoneCall(bus, "addSource", zone, address);
    } catch (error) {
      if (!says(error, "ZONE_ALREADY_SET")) throw error;
    }
  }
}

/**
 * Takes addresses out of a zone. Those that are in none or in another one (somebody else's by now) are no error, and
 * neither is a firewalld that does not run: what it knew went with it.
 */
export function removeSources(zone: string, addresses: readonly string[]): void {
  using bus = openSystemBus();
  if (bus === undefined) return;
  for (const address of addresses) {
    try {
      zoneCall(bus, "removeSource", zone, address);
    } catch (error) {
      if (isGone(error)) return;
      if (!says(error, "UNKNOWN_SOURCE", "ZONE_CONFLICT", "INVALID_ZONE", "NOT_ENABLED")) throw error;
    }
  }
}

const isGone = (error: unknown): boolean =>
  error instanceof DbusError &&
  ["ServiceUnknown", "NameHasNoOwner", "NoReply", "Disconnected"].some((name) =>
    error.error.endsWith(`.${name}`),
  );

/** Whether firewalld's complaint begins with one of its error codes. */
const says = (error: unknown, ...codes: string[]): boolean =>
  error instanceof DbusError && codes.some((code) => error.msg.includes(code));

/** CHECK's part: throws CniError naming the first address that is not in the zone. */
export function verifySources(zone: string, addresses: readonly string[]): void {
  using bus = openBus();
  for (const address of addresses)
    if (zoneCall(bus, "querySource", zone, address)[0] !== true)
      throw mismatch(`${withPrefix(address)} is not in firewalld's zone ${JSON.stringify(zone)}`);
}
