import { IptablesError } from "./error.ts";

/** What keeps the rules. */
export type Backend = "iptables" | "nftables";

/**
 * Does a piece of work on the backend that a config names, or without a name as the reference chooses: iptables unless
 * that is unusable on this machine. Which it was comes back with the result. Nothing is probed beforehand: a
 * transaction that iptables can't even begin has done nothing.
 */
export function onBackend<T>(
  named: Backend | undefined,
  work: Readonly<Record<Backend, () => T>>,
): { backend: Backend; result: T } {
  if (named !== undefined) return { backend: named, result: work[named]() };
  try {
    return { backend: "iptables", result: work.iptables() };
  } catch (error) {
    if (!(error instanceof IptablesError && error.unusable)) throw error;
    try {
      return { backend: "nftables", result: work.nftables() };
    } catch (second) {
      // Neither: the first complaint is the one about the default.
      if (second instanceof Error && (second as { unusable?: boolean }).unusable === true) throw error;
      throw second;
    }
  }
}
