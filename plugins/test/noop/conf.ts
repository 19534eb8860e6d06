import { confSchema, type Infer, v } from "@tscni/conf";

export const NoopConf = confSchema({
  debugFile: v.optional(v.string()),
  commandLog: v.optional(v.string()),
});

export type NoopConf = Infer<typeof NoopConf>;
