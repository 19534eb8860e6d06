import * as v from "./schema.ts";

/** The keys `ipMasq` and `ipMasqBackend` of plugins whose containers the host routes for. */
export const masqueradeKeys = () => ({
  ipMasq: v.optional(v.boolean(), false),
  ipMasqBackend: v.optional(
    v.check(
      v.string(),
      (name) => name === "" || name === "iptables" || name === "nftables",
      (name) => `unknown ipmasq backend "${name}"`,
      { enum: ["iptables", "nftables", ""] },
    ),
    "",
  ),
});

/** The backend that a config names; undefined leaves the choice to the machine. */
export const masqBackendOf = (conf: {
  readonly ipMasqBackend: string;
}): "iptables" | "nftables" | undefined =>
  conf.ipMasqBackend === "" ? undefined : (conf.ipMasqBackend as "iptables" | "nftables");
