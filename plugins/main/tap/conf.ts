import { confSchema, dnsConf, type Infer, integer, ipamConf, mac, mtu, v } from "@tscni/conf";

/** A user's or group's number. */
const id = () => integer(0, 0xffffffff);

/** What the plugin's README lists; unknown keys are ignored. */
export const TapConf = confSchema({
  multiQueue: v.optional(v.boolean(), false),
  mtu: v.optional(mtu(), 0),
  mac: v.optional(mac()),
  owner: v.optional(id()),
  group: v.optional(id()),
  selinuxContext: v.optional(v.string(), ""),
  bridge: v.optional(v.string(), ""),
  ipam: v.optional(ipamConf()),
  dns: v.optional(dnsConf()),
  runtimeConfig: v.optional(v.looseObject({ mac: v.optional(mac()) })),
});

export type TapConf = Infer<typeof TapConf>;
