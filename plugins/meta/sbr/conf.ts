import { parseIp } from "@tscni/addr";
import { confSchema, type Infer, integer, ipAddress, v } from "@tscni/conf";

const gateways = v.check(
  v.array(ipAddress()),
  (list) => {
    const families = list.map((text) => parseIp(text)?.family);
    return new Set(families).size === families.length;
  },
  "has more than one gateway of a family",
);

/** What the plugin's README lists; unknown keys are ignored. */
export const SbrConf = confSchema({
  table: v.optional(integer(1, 0xffffffff)),
  gateways: v.optional(gateways, []),
  addSourceHints: v.optional(v.boolean(), false),
});

export type SbrConf = Infer<typeof SbrConf>;
