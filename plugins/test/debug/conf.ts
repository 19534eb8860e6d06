import { confSchema, type Infer, v } from "@tscni/conf";

/** Commands, each a list of words. */
const hooks = () => v.optional(v.array(v.array(v.string())), []);

export const DebugConf = confSchema({
  cniOutput: v.optional(v.string()),
  addHooks: hooks(),
  delHooks: hooks(),
  checkHooks: hooks(),
});

export type DebugConf = Infer<typeof DebugConf>;
