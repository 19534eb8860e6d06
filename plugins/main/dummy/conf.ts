import { confSchema, type Infer, ipamConf, v } from "@tscni/conf";

/** What the plugin's README lists; unknown keys are ignored. */
export const DummyConf = v.check(
  confSchema({ ipam: v.optional(ipamConf()) }),
  (conf) => Boolean(conf.ipam?.type),
  "dummy interface requires an IPAM configuration",
);

export type DummyConf = Infer<typeof DummyConf>;
