import { cidr, confSchema, type Infer, ipAddress, v } from "@tscni/conf";

/** What the plugin's README lists; unknown keys are ignored. Nothing is required, so that DEL can always parse it. */
export const WidgetConf = confSchema({
  ipam: v.optional(v.object({ address: v.optional(cidr()), gateway: v.optional(ipAddress()) })),
});

export type WidgetConf = Infer<typeof WidgetConf>;
