import { confSchema, dnsConf, type Infer, integer, ipamConf, v } from "@tscni/conf";

/** IPVLAN_MODE_*, linux/if_link.h */
export const modes = ["l2", "l3", "l3s"] as const;

const mode = v.check(
  v.string(),
  (name) => name === "" || (modes as readonly string[]).includes(name),
  (name) => `unknown ipvlan mode: "${name}"`,
  { enum: ["", ...modes] },
);

/** What the plugin's README lists; unknown keys are ignored. */
export const IpvlanConf = confSchema({
  master: v.optional(v.string(), ""),
  mode: v.optional(mode, ""),
  mtu: v.optional(integer(0), 0),
  linkInContainer: v.optional(v.boolean(), false),
  ipam: v.optional(ipamConf()),
  dns: v.optional(dnsConf()),
});

export type IpvlanConf = Infer<typeof IpvlanConf>;

/** The mode as the kernel has it. */
export const modeOf = ({ mode }: IpvlanConf): number => (modes as readonly string[]).indexOf(mode || "l2");
