import { confSchema, type Infer, oneOf, v } from "@tscni/conf";

export type BackendName = "iptables" | "nftables" | "firewalld";

const backends = ["", "iptables", "nftables", "firewalld"] as const;
const policies = ["", "open", "same-bridge", "isolated"] as const;

/** Names that mean something else than a chain of the administrator's. */
const reserved: readonly string[] = [
  ..."INPUT OUTPUT FORWARD PREROUTING POSTROUTING ACCEPT DROP RETURN QUEUE REJECT LOG MARK".split(" "),
  ..."CNI-FORWARD CNI-ISOLATION-STAGE-1 CNI-ISOLATION-STAGE-2".split(" "),
];

/** What iptables takes for a new chain's name: 28 printable characters that no quoting is needed for. */
function isChainName(name: string): boolean {
  if (name.length > 28 || "-!:*".includes(name[0]!) || reserved.includes(name)) return false;
  for (const c of name)
    if (c <= " " || c > "~" || c === '"' || c === "'" || c === "\\" || c === "#") return false;
  return true;
}

/** D-Bus refuses some of these; what a zone may be called otherwise, firewalld says. */
function hasControlCharacter(text: string): boolean {
  for (const c of text) if (c < " " || c === "\x7f") return true;
  return false;
}

/** What the plugin's README lists; unknown keys are ignored. "" is as good as absent, as in the reference. */
export const FirewallConf = confSchema({
  backend: v.optional(oneOf(backends, "unrecognized backend"), ""),
  iptablesAdminChainName: v.optional(
    v.check(
      v.string(),
      (name) => name === "" || isChainName(name),
      "is not a name that a chain of the administrator's can have in iptables",
    ),
    "",
  ),
  firewalldZone: v.optional(
    v.check(v.string(), (name) => !hasControlCharacter(name), "is not a zone's name"),
    "",
  ),
  ingressPolicy: v.optional(oneOf(policies, "unknown ingress policy:"), "open"),
});

export type FirewallConf = Infer<typeof FirewallConf>;

/** The backend that a config names; undefined when it leaves the choice to us. */
export const backendOf = ({ backend }: FirewallConf): BackendName | undefined =>
  backend === "" ? undefined : (backend as BackendName);
