import type { Dns, ErrorObject, IpConfig, Route } from "@tscni/types";
import type { Wishes } from "./options.ts";

/*
 * How a plugin and the daemon talk, over a UNIX stream socket: the plugin connects, writes a line, reads a line.
 * Each line is a JSON object. Nobody else is meant to speak it, but both may be of different versions while a node
 * is upgraded: unknown keys are ignored, and an unknown verb is an error.
 */

/** Whose lease: one interface of one container on one network. */
export interface Attachment {
  network: string;
  containerId: string;
  ifName: string;
}

export type Request =
  /** Leases an address; the same again answers with the lease that there is. */
  | ({ verb: "ADD"; netns: string } & Attachment & Wishes)
  | ({ verb: "DEL" } & Attachment)
  /** The lease, if it is good; never acquires one. */
  | ({ verb: "CHECK"; netns: string } & Attachment)
  /** Whether somebody is there. */
  | { verb: "STATUS" }
  /** Releases the leases of a network that are not in the list, as `CONTAINER IFNAME`. */
  | { verb: "GC"; network: string; valid: string[] }
  | { verb: "LIST" };

/** What a lease gives a container. */
export interface LeaseResult {
  ip: IpConfig;
  routes: Route[];
  dns: Dns;
}

/** A lease as people are shown it. Times are seconds from now; absent ones never come. */
export interface LeaseView extends Attachment {
  /** acquiring, bound, renewing, rebinding, expired or released */
  state: string;
  address?: string;
  gateway?: string;
  server?: string;
  netns: string;
  mac?: string;
  renewsIn?: number;
  rebindsIn?: number;
  expiresIn?: number;
  /** What went wrong last. */
  problem?: string;
}

export type Answer =
  | { error: ErrorObject }
  | { lease: LeaseResult }
  | { leases: LeaseView[] }
  /** Of DEL and GC: what was released. */
  | { released: string[] }
  | { ok: true };

/** Longer lines are not read. */
export const maxLineBytes = 1 << 20;
