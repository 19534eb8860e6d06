import { masqBackendOf } from "@tscni/conf";
import {
  beginDeleteMasquerade,
  beginMasquerade,
  begun,
  deleteMasquerades,
  gcMasquerade,
  masqueradeStatus,
  type Pending,
  repairMasquerade,
  together,
  verifyMasquerade,
} from "@tscni/masquerade";
import type { Call, Undo, ValidAttachment } from "@tscni/skel";
import { messageOf, type Result } from "@tscni/types";
import type { BridgeConf } from "./conf.ts";
import {
  beginDeleteSpoofCheck,
  beginSpoofCheck,
  gcSpoofChecks,
  spoofCheckStatus,
  verifySpoofCheck,
} from "./spoof.linux.ts";

/*
 * The rules of an attachment in the firewall: masquerading (`ipMasq`) and the check of MAC addresses (`macspoofchk`).
 * Other processes make and delete them, while the caller goes on with links and addresses.
 */

type BridgeCall = Call<BridgeConf>;

const addressesOf = (result: Result | undefined): string[] | undefined =>
  result?.ips.map(({ address }) => address);

/** Starts making the rules that the config asks for; undo waits for them and takes them back. */
export function beginRules(call: BridgeCall, result: Result, mac: string | undefined, undo: Undo): Pending {
  const pending: Pending[] = [];
  undo.defer(() => {
    try {
      together(pending).wait();
    } catch {} // That is why we are here.
    beginDeleteRules(call, addressesOf(result)).wait();
  });
  if (call.conf.ipMasq && result.ips.length > 0)
    pending.push(beginMasquerade(call, addressesOf(result)!, masqBackendOf(call.conf)));
  if (call.conf.macspoofchk && mac !== undefined) pending.push(beginSpoofCheck(call, mac));
  return together(pending);
}

/** Starts taking away whatever rules there are of the attachment, whoever made them and whatever the config says now. */
export function beginDeleteRules(call: BridgeCall, addresses = addressesOf(call.prevResult)): Pending {
  const { ipMasq, macspoofchk } = call.conf;
  return together([
    attempt(call, ipMasq, () => beginDeleteMasquerade(call, addresses)),
    attempt(call, macspoofchk, () => beginDeleteSpoofCheck(call)),
  ]);
}

/** A failure counts where the config asked for the rules; otherwise there was most likely nothing to take away. */
function attempt(call: BridgeCall, asked: boolean, begin: () => Pending): Pending {
  const pending = begun(begin);
  return {
    wait() {
      try {
        pending.wait();
      } catch (error) {
        if (asked) throw error;
        call.warn(messageOf(error));
      }
    },
  };
}

/** Before the DELs of several attachments: what takes a transaction of its own each, in one for all. */
export function deleteRulesOf(call: BridgeCall, next: readonly ValidAttachment[]): void {
  const { network } = call;
  deleteMasquerades([
    call,
    ...next.map(({ containerID, ifname }) => ({ network, containerId: containerID, ifName: ifname })),
  ]);
}

/** Throws for a rule that the config asks for and that is not there. */
export function verifyRules(call: BridgeCall, result: Result, mac: string | undefined): void {
  const { ipMasq, macspoofchk } = call.conf;
  if (ipMasq && result.ips.length > 0) verifyMasquerade(call, addressesOf(result)!, masqBackendOf(call.conf));
  if (macspoofchk && mac !== undefined) verifySpoofCheck(call, mac);
}

/** Puts back what is missing. */
export function repairRules(call: BridgeCall, result: Result, mac: string | undefined): void {
  const { ipMasq, macspoofchk } = call.conf;
  if (ipMasq && result.ips.length > 0) repairMasquerade(call, addressesOf(result)!, masqBackendOf(call.conf));
  if (macspoofchk && mac !== undefined) beginSpoofCheck(call, mac).wait();
}

/** Throws code 50 when what the config asks for can't be had here. */
export function rulesStatus({ conf }: BridgeCall): void {
  if (conf.ipMasq) masqueradeStatus(masqBackendOf(conf));
  if (conf.macspoofchk) spoofCheckStatus();
}

export function gcRules(call: BridgeCall, valid: readonly ValidAttachment[]): void {
  gcMasquerade(call.network, valid, call.conf.ipMasq, call.warn);
  gcSpoofChecks(call.network, valid, call.warn);
}
