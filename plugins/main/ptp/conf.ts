import { confSchema, dnsConf, type Infer, ipamConf, masqueradeKeys, mtu, v } from "@tscni/conf";

/** What the plugin's README lists; unknown keys are ignored. */
export const PtpConf = confSchema({
  mtu: v.optional(mtu(), 0),
  ...masqueradeKeys(),
  ipam: v.optional(ipamConf()),
  dns: v.optional(dnsConf()),
});

export type PtpConf = Infer<typeof PtpConf>;
