import { confSchema, dnsConf, type Infer, integer, ipamConf, mac, mtu, oneOf, v } from "@tscni/conf";

/** MACVLAN_MODE_*, linux/if_link.h */
export const modes: Readonly<Record<string, number>> = { private: 1, vepa: 2, bridge: 4, passthru: 8 };

const mode = oneOf(["", ...Object.keys(modes)], "unknown macvlan mode:");

/** What the plugin's README lists; unknown keys are ignored. */
export const MacvlanConf = confSchema({
  master: v.optional(v.string(), ""),
  mode: v.optional(mode, ""),
  mtu: v.optional(mtu(), 0),
  mac: v.optional(mac()),
  linkInContainer: v.optional(v.boolean(), false),
  bcqueuelen: v.optional(integer(0, 0xffffffff), 0),
  ipam: v.optional(ipamConf()),
  dns: v.optional(dnsConf()),
  runtimeConfig: v.optional(v.looseObject({ mac: v.optional(mac()) })),
});

export type MacvlanConf = Infer<typeof MacvlanConf>;

/** The mode as the kernel has it. */
export const modeOf = (conf: MacvlanConf): number => modes[conf.mode || "bridge"]!;
