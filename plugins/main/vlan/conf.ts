import { confSchema, dnsConf, type Infer, ipamConf, mtu, v } from "@tscni/conf";

const keys = confSchema({
  master: v.optional(v.string(), ""),
  vlanId: v.optional(
    v.check(
      v.number(),
      (id) => Number.isInteger(id) && id >= 0 && id <= 4094,
      (id) => `invalid VLAN ID ${id} (must be between 0 and 4094)`,
      { type: "integer", minimum: 0, maximum: 4094 },
    ),
    0,
  ),
  mtu: v.optional(mtu(), 0),
  linkInContainer: v.optional(v.boolean(), false),
  ipam: v.optional(ipamConf()),
  dns: v.optional(dnsConf()),
});

/** What the plugin's README lists; unknown keys are ignored. */
export const VlanConf = v.check(
  keys,
  (conf) => conf.master !== "",
  '"master" field is required. It specifies the host interface name to create the VLAN for',
);

export type VlanConf = Infer<typeof VlanConf>;
