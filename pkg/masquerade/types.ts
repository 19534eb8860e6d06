import { type Cidr, parseCidr } from "@tscni/addr";
import type { Backend } from "@tscni/iptables";

/** What is recorded of an attachment whose addresses are masqueraded. */
export interface MasqueradeRecord {
  backend: Backend;
  /** Each with the prefix length of its subnet, `10.1.0.5/24`. */
  addresses: readonly string[];
}

/** Work that is under way in another process. */
export interface Pending {
  /** Waits for its end. Throws when it failed; then nothing was done. */
  wait(): void;
}

export const nothing: Pending = { wait: () => {} };

/** The work of several; all are waited for, and the first failure is thrown. */
export function together(pending: readonly Pending[]): Pending {
  return {
    wait() {
      const failures: unknown[] = [];
      for (const each of pending) {
        try {
          each.wait();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}

/** Begins something; a failure to begin is one of the wait's. */
export function begun(begin: () => Pending): Pending {
  try {
    return begin();
  } catch (error) {
    return {
      wait() {
        throw error;
      },
    };
  }
}

/** Waits for transactions that may have to be begun anew, because somebody else changed what they were made from. */
export function retrying(begin: () => Pending, isRetried: (error: unknown) => boolean): Pending {
  let pending = begun(begin);
  return {
    wait() {
      for (let attempt = 1; ; attempt++) {
        try {
          return pending.wait();
        } catch (error) {
          if (attempt === attempts || !isRetried(error)) throw error;
          pending = begun(begin);
        }
      }
    },
  };
}

const attempts = 5;

export const ofFamily = (cidrs: readonly Cidr[], family: 4 | 6): Cidr[] =>
  cidrs.filter(({ ip }) => ip.family === family);

/** The addresses of a record or result; what is damaged is left out. */
export const cidrsOf = (addresses: readonly string[]): Cidr[] =>
  addresses.map((text) => parseCidr(text)).filter((cidr) => cidr !== undefined);
