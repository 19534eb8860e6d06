import { CniError, ErrorCode, type Result } from "@tscni/types";
import { type DelegateCall, delegate } from "./delegate.ts";

/** A call of a plugin whose config may name an IPAM plugin. */
export type IpamCall = DelegateCall & {
  readonly conf: { readonly ipam?: { readonly type?: string } | undefined };
};

interface UndoList {
  defer(step: () => void | Promise<void>): void;
}

/** Whether the config asks for addresses; without, an attachment is of layer 2 only. */
export const hasIpam = (call: IpamCall): boolean => Boolean(call.conf.ipam?.type);

/**
 * Asks the IPAM plugin for addresses and registers their release. Undefined when the config has no IPAM
 * plugin. Throws when the plugin fails or answers without an address.
 */
export async function addLease(call: IpamCall, undo: UndoList): Promise<Result | undefined> {
  if (!hasIpam(call)) return undefined;
  const lease = await delegate(typeOf(call), "ADD", call);
  undo.defer(() => releaseLease(call));
  if (lease === undefined || lease.ips.length === 0)
    throw new CniError(ErrorCode.Internal, "IPAM plugin returned missing IP config", {
      details: `ipam.type "${typeOf(call)}" answered ADD without an address`,
    });
  return lease;
}

/** IPAM plugins that tell a server over the container's own interface, the reference's of that name too. */
const needLink: readonly string[] = ["dhcp"];

/**
 * The first step of a DEL, before the interface goes: lets an IPAM plugin that needs it to give the addresses back do
 * so. Nothing for all the others, whose turn is `releaseLease`, which also reports what fails here.
 */
export async function releaseOverLink(call: IpamCall): Promise<void> {
  if (!needLink.includes(typeOf(call))) return;
  await releaseLease(call).catch(() => {});
}

/** Gives the addresses back. Call it when no interface has them any more. */
export async function releaseLease(call: IpamCall): Promise<void> {
  if (hasIpam(call)) await delegate(typeOf(call), "DEL", call);
}

export async function checkLease(call: IpamCall): Promise<void> {
  if (hasIpam(call)) await delegate(typeOf(call), "CHECK", call);
}

/** Throws code 50 or 51 when the IPAM plugin could not serve an ADD. */
export async function ipamStatus(call: IpamCall): Promise<void> {
  if (hasIpam(call)) await delegate(typeOf(call), "STATUS", call);
}

/** Passes GC on, as the spec demands (the Go plugins don't). */
export async function gcLeases(call: IpamCall): Promise<void> {
  if (hasIpam(call)) await delegate(typeOf(call), "GC", call);
}

const typeOf = (call: IpamCall): string => call.conf.ipam?.type ?? "";
