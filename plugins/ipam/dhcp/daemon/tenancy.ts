import { CniError, messageOf as textOf } from "@tscni/types";
import type { Attachment, LeaseView } from "../protocol.ts";
import { ipv4Text } from "../wire/ipv4.ts";
import { Client, type Limits, PlaceGone, type Renewal } from "./client.ts";
import { isPresent, type Place, takeDown } from "./container.ts";
import type { Identity } from "./identity.ts";
import type { Lease } from "./lease.ts";
import { Cancelled, type Loop, Waiter } from "./loop.ts";
import { release } from "./release.ts";
import { bootId, type LeaseRecord, type Store } from "./store.ts";
import { type Log, Trace } from "./trace.ts";

/** What all leases of a daemon have in common. */
export interface Household {
  loop: Loop;
  store: Store;
  limits: Limits;
  log: Log;
}

type State = "acquiring" | "bound" | "renewing" | "rebinding" | "expired" | "released";

/** One attachment's address: from the first DISCOVER to its release, or to where it is lost. */
export class Tenancy {
  readonly attachment: Attachment;
  readonly place: Place;
  readonly #identity: Identity;
  readonly #house: Household;
  readonly #waiter: Waiter;
  #state: State = "acquiring";
  #lease: Lease | undefined;
  #problem: string | undefined;

  constructor(house: Household, attachment: Attachment, place: Place, identity: Identity) {
    this.attachment = attachment;
    this.place = place;
    this.#identity = identity;
    this.#house = house;
    this.#waiter = new Waiter(house.loop);
  }

  /** Goes on with a lease from disk; `keep` is to follow. */
  static resume(house: Household, record: LeaseRecord): Tenancy {
    const { network, containerId, ifName, place, identity, lease, expired } = record;
    const tenancy = new Tenancy(house, { network, containerId, ifName }, place, identity);
    tenancy.#lease = lease;
    tenancy.#state = expired ? "expired" : "bound";
    return tenancy;
  }

  get state(): State {
    return this.#state;
  }

  get lease(): Lease | undefined {
    return this.#lease;
  }

  /** Gets the first lease. Throws CniError, PlaceGone, Cancelled. */
  async acquire(): Promise<Lease> {
    const trace = this.#trace();
    const lease = await this.#client(trace).acquire();
    this.#commit(lease, trace);
    return lease;
  }

  /** Keeps the lease until it is released, lost, or its container is gone. */
  async keep(gone: () => void): Promise<void> {
    try {
      while (this.#state !== "expired") {
        const { renewAtMs } = this.#lease!;
        await this.#waiter.until(renewAtMs ?? Number.POSITIVE_INFINITY);
        if (!isPresent(this.place)) return this.#leave(gone);
        await this.#prolong();
      }
    } catch (error) {
      if (error instanceof Cancelled) return;
      if (error instanceof PlaceGone || !isPresent(this.place)) return this.#leave(gone);
      this.#problem = textOf(error);
      this.#trace().log(`not kept up any more: ${textOf(error)}`);
    }
  }

  /** Ends everything and tells the server. The record goes first: who dies here has only a lease that expires. */
  end(): void {
    this.#waiter.cancel();
    this.#state = "released";
    this.#house.store.remove(this.attachment);
    if (this.#lease) release(this.#house.loop, this.place, this.#identity, this.#lease, this.#trace());
  }

  /** Stops without a word: another daemon is going to take over. */
  stop(): void {
    this.#waiter.cancel();
  }

  view(): LeaseView {
    const { loop } = this.#house;
    const lease = this.#lease;
    const seconds = (atMs: number) => Math.round((atMs - loop.now()) / 1000);
    const times: Partial<LeaseView> = {};
    if (typeof lease?.renewAtMs === "number") times.renewsIn = seconds(lease.renewAtMs);
    if (typeof lease?.rebindAtMs === "number") times.rebindsIn = seconds(lease.rebindAtMs);
    if (typeof lease?.expireAtMs === "number") times.expiresIn = seconds(lease.expireAtMs);
    return {
      ...this.attachment,
      state: this.#state,
      ...(lease ? lease.result.ip : {}),
      ...(lease ? { server: ipv4Text(lease.server) } : {}),
      netns: this.place.netns,
      mac: this.place.mac,
      ...times,
      ...(this.#problem === undefined ? {} : { problem: this.#problem }),
    };
  }

  /** Renewing, rebinding, and what is left when neither helps. Throws Cancelled, PlaceGone. */
  async #prolong(): Promise<void> {
    const trace = this.#trace();
    const client = this.#client(trace);
    const lease = this.#lease!;
    const { loop, limits } = this.#house;
    let renewal: Renewal;
    const late = lease.expireAtMs! - loop.now() <= 0;
    if (loop.now() < lease.rebindAtMs!) {
      this.#state = "renewing";
      renewal = await this.#attempt(trace, () => client.renew(lease));
      if (renewal === undefined) await this.#waiter.until(lease.rebindAtMs!);
    }
    if (renewal === undefined && loop.now() < lease.expireAtMs!) {
      this.#state = "rebinding";
      renewal = await this.#attempt(trace, () => client.rebind(lease));
      if (renewal === undefined) await this.#waiter.until(lease.expireAtMs!);
    }
    // Refused, or it expired while there was no daemon: the server may still give the same address.
    if (renewal === "refused" || late) {
      trace.log(`asking for ${ipv4Text(lease.address)} anew, for ${limits.timeoutMs / 1000} s`);
      renewal = await this.#attempt(trace, () => client.acquire(lease.address));
    }
    if (renewal === undefined || renewal === "refused") this.#expire(trace);
    else this.#commit(renewal, trace);
  }

  /** What goes wrong here may go better in the next state. */
  async #attempt(trace: Trace, work: () => Promise<Renewal>): Promise<Renewal> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Cancelled || error instanceof PlaceGone) throw error;
      this.#problem = error instanceof CniError ? error.message : textOf(error);
      trace.log(`${this.#state}: ${this.#problem}`);
      return undefined;
    }
  }

  #commit(lease: Lease, trace: Trace): void {
    this.#lease = lease;
    this.#state = "bound";
    this.#problem = undefined;
    this.#save();
    const seconds =
      lease.expireAtMs === null ? undefined : Math.round((lease.expireAtMs - this.#house.loop.now()) / 1000);
    trace.log(
      `bound to ${lease.result.ip.address} of ${ipv4Text(lease.server)}${seconds === undefined ? " for ever" : ` for ${seconds} s`}`,
    );
  }

  /** As the reference: the interface goes down, and nothing brings it up again but a new ADD. */
  #expire(trace: Trace): void {
    this.#state = "expired";
    this.#problem ??= trace.summary();
    takeDown(this.place);
    this.#save();
    trace.log(`the lease of ${ipv4Text(this.#lease!.address)} is lost: ${this.place.ifName} is down`);
  }

  #leave(gone: () => void): void {
    this.#trace().log(`${this.place.ifName} in ${this.place.netns} is gone`);
    this.end();
    gone();
  }

  /** A lease that can't be written down is kept all the same, until the daemon ends. */
  #save(): void {
    try {
      this.#house.store.write({
        version: 1,
        bootId: bootId(),
        ...this.attachment,
        place: this.place,
        identity: this.#identity,
        lease: this.#lease!,
        expired: this.#state === "expired",
      });
    } catch (error) {
      this.#problem = `a restart of the daemon would forget this lease: ${textOf(error)}`;
      this.#trace().log(this.#problem);
    }
  }

  #client(trace: Trace): Client {
    const { loop, limits } = this.#house;
    return new Client(loop, this.#waiter, this.place, this.#identity, limits, trace);
  }

  #trace(): Trace {
    const { network, containerId, ifName } = this.attachment;
    return new Trace(this.#house.log, `${network} ${containerId} ${ifName}`);
  }
}
