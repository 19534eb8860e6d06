import { confSchema, type Infer, integer, v } from "@tscni/conf";

/** What the plugin's README lists; unknown keys are ignored. */
export const WidgetConf = confSchema({ mtu: v.optional(integer(68), 1500) });

export type WidgetConf = Infer<typeof WidgetConf>;
