import { confSchema, type Infer, integer, v } from "@tscni/conf";
import { interfaceNameProblem } from "@tscni/types";

const keys = confSchema({
  vrfname: v.optional(
    v.check(
      v.string(),
      (name) => name === "" || interfaceNameProblem(name) === undefined,
      "is not an interface name",
    ),
    "",
  ),
  table: v.optional(integer(0, 0xffffffff), 0),
});

/** What the plugin's README lists; unknown keys are ignored. */
export const VrfConf = v.check(
  keys,
  (conf) => conf.vrfname !== "",
  "configuration is expected to have a valid vrf name",
);

export type VrfConf = Infer<typeof VrfConf>;
