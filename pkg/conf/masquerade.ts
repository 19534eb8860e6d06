import { oneOf } from "./fields.ts";
import * as v from "./schema.ts";

/** The keys `ipMasq` and `ipMasqBackend` of plugins whose containers the host routes for. */
export const masqueradeKeys = () => ({
  ipMasq: v.optional(v.boolean(), false),
  ipMasqBackend: v.optional(oneOf(["iptables", "nftables", ""], "unknown ipmasq backend"), ""),
});

/** The backend that a config names; undefined leaves the choice to the machine. */
export const masqBackendOf = (conf: {
  readonly ipMasqBackend: "iptables" | "nftables" | "";
}): "iptables" | "nftables" | undefined => conf.ipMasqBackend || undefined;
