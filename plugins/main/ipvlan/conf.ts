import { confSchema, dnsConf, type Infer, ipamConf, mtu, oneOf, v } from "@tscni/conf";

/** IPVLAN_MODE_*, linux/if_link.h */
export const modes = ["l2", "l3", "l3s"] as const;

const mode = oneOf(["", ...modes], "unknown ipvlan mode:");

/** What the plugin's README lists; unknown keys are ignored. */
export const IpvlanConf = confSchema({
  master: v.optional(v.string(), ""),
  mode: v.optional(mode, ""),
  mtu: v.optional(mtu(), 0),
  linkInContainer: v.optional(v.boolean(), false),
  ipam: v.optional(ipamConf()),
  dns: v.optional(dnsConf()),
});

export type IpvlanConf = Infer<typeof IpvlanConf>;

/** The mode as the kernel has it. */
export const modeOf = ({ mode }: IpvlanConf): number => (modes as readonly string[]).indexOf(mode || "l2");
