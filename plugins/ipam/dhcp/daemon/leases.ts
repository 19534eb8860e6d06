import { CniError, ErrorCode } from "@tscni/types";
import type { Answer, Attachment, Request } from "../protocol.ts";
import { findPlace, isPresent, type Place } from "./container.ts";
import { clientIdOf } from "./identity.ts";
import { Cancelled } from "./loop.ts";
import { release } from "./release.ts";
import { bootId, type LeaseRecord } from "./store.ts";
import { type Household, Tenancy } from "./tenancy.ts";
import { Trace } from "./trace.ts";

type RequestOf<V extends Request["verb"]> = Extract<Request, { verb: V }>;

/** Told when the one who asks is not there any more. */
export type OnHangUp = (callback: () => void) => void;

/** All leases of the daemon, and what plugins can ask of them. */
export class Leases {
  readonly #house: Household;
  /** A path in the daemon's eyes is this before the path in the plugins'. */
  readonly #hostPrefix: string;
  readonly #broadcast: boolean;
  readonly #tenancies = new Map<string, Tenancy>();

  constructor(house: Household, options: { hostPrefix: string; broadcast: boolean }) {
    this.#house = house;
    this.#hostPrefix = options.hostPrefix;
    this.#broadcast = options.broadcast;
  }

  /** Goes on with the leases on disk; those whose containers went meanwhile are released. */
  resume(): void {
    const { store, log } = this.#house;
    const boot = bootId();
    for (const record of store.readAll(log)) {
      if (record.bootId !== boot || !isPresent(record.place)) this.#bury(record);
      else this.#keep(Tenancy.resume(this.#house, record));
    }
  }

  #bury(record: LeaseRecord): void {
    const { loop, store, log } = this.#house;
    const trace = new Trace(log, nameOf(record));
    trace.log("its container went while there was no daemon");
    store.remove(record);
    release(loop, record.place, record.identity, record.lease, trace);
  }

  async answer(request: Request, onHangUp: OnHangUp): Promise<Answer> {
    switch (request.verb) {
      case "ADD":
        return { lease: (await this.#add(request, onHangUp)).lease!.result };
      case "DEL":
        return { released: this.#end(this.#tenancies.get(nameOf(request))) };
      case "CHECK":
        return { lease: this.#check(request) };
      case "GC":
        return { released: this.#collect(request) };
      case "LIST":
        return { leases: [...this.#tenancies.values()].map((tenancy) => tenancy.view()) };
      case "STATUS":
        return { ok: true };
      default: {
        const verb = JSON.stringify((request as { verb?: unknown }).verb);
        throw new CniError(
          ErrorCode.Internal,
          `the DHCP daemon does not know the verb ${verb}: is it of another version?`,
        );
      }
    }
  }

  /** Stops without releasing anything. */
  stop(): void {
    for (const tenancy of this.#tenancies.values()) tenancy.stop();
  }

  async #add(request: RequestOf<"ADD">, onHangUp: OnHangUp): Promise<Tenancy> {
    const place = findPlace(this.#hostPrefix + request.netns, request.ifName);
    const before = this.#tenancies.get(nameOf(request));
    if (before && isSame(before.place, place)) {
      if (before.state === "acquiring")
        throw new CniError(ErrorCode.TryAgainLater, `another ADD of ${nameOf(request)} is under way`);
      if (before.state !== "expired") return before;
    }
    this.#end(before);
    return this.#acquire(request, place, onHangUp);
  }

  async #acquire(request: RequestOf<"ADD">, place: Place, onHangUp: OnHangUp): Promise<Tenancy> {
    const { network, containerId, ifName, provide, request: wanted } = request;
    const attachment = { network, containerId, ifName };
    // Several ipvlan interfaces have one MAC address: what is sent to it reaches none before it has an address.
    const broadcast = this.#broadcast || place.kind === "ipvlan";
    const identity = { mac: place.mac, id: clientIdOf(attachment), provide, request: wanted, broadcast };
    const tenancy = new Tenancy(this.#house, attachment, place, identity);
    const name = nameOf(attachment);
    this.#tenancies.set(name, tenancy);
    // Nobody is going to use what nobody is told of.
    onHangUp(() => this.#end(tenancy));
    try {
      await tenancy.acquire();
    } catch (error) {
      this.#end(tenancy);
      if (!(error instanceof Cancelled)) throw error;
      throw new CniError(ErrorCode.TryAgainLater, `the lease of ${name} was released before it was there`);
    }
    this.#keep(tenancy);
    return tenancy;
  }

  #keep(tenancy: Tenancy): void {
    this.#tenancies.set(nameOf(tenancy.attachment), tenancy);
    void tenancy.keep(() => this.#forget(tenancy));
  }

  /** Unless another has taken its name. */
  #forget(tenancy: Tenancy): void {
    const name = nameOf(tenancy.attachment);
    if (this.#tenancies.get(name) === tenancy) this.#tenancies.delete(name);
  }

  #end(tenancy: Tenancy | undefined): string[] {
    if (tenancy === undefined || tenancy.state === "released") return [];
    tenancy.end();
    this.#forget(tenancy);
    const { lease } = tenancy;
    return lease ? [`${nameOf(tenancy.attachment)} ${lease.result.ip.address}`] : [];
  }

  #check(request: RequestOf<"CHECK">) {
    const name = nameOf(request);
    const tenancy = this.#tenancies.get(name);
    const wrong = (what: string) => new CniError(ErrorCode.Internal, `dhcp: ${what}`);
    if (tenancy?.lease === undefined) throw wrong(`the daemon has no lease of ${name}`);
    if (tenancy.state === "expired")
      throw wrong(
        `the lease of ${name}, ${tenancy.lease.result.ip.address}, is lost: ${tenancy.view().problem}`,
      );
    if (tenancy.place.netns !== this.#hostPrefix + request.netns || !isPresent(tenancy.place))
      throw wrong(`the lease of ${name} is for another interface, in ${tenancy.place.netns}`);
    return tenancy.lease.result;
  }

  #collect({ network, valid }: RequestOf<"GC">): string[] {
    const wanted = new Set(valid);
    return [...this.#tenancies.values()]
      .filter(({ attachment }) => attachment.network === network)
      .filter(({ attachment: { containerId, ifName } }) => !wanted.has(`${containerId} ${ifName}`))
      .flatMap((tenancy) => this.#end(tenancy));
  }
}

/** None of its parts has spaces. */
const nameOf = ({ network, containerId, ifName }: Attachment): string =>
  `${network} ${containerId} ${ifName}`;

const isSame = (a: Place, b: Place): boolean =>
  a.netnsId === b.netnsId && a.ifIndex === b.ifIndex && a.mac === b.mac;
