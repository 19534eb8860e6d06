import { confSchema, type Infer, integer, ipamConf, v } from "@tscni/conf";

/** What the plugin's README lists; unknown keys are ignored. */
export const WidgetConf = confSchema({
  mtu: v.optional(integer(0), 0),
  ipam: v.optional(ipamConf()),
});

export type WidgetConf = Infer<typeof WidgetConf>;
