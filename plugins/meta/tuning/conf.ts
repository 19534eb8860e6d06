import { confSchema, type Infer, integer, mac, v } from "@tscni/conf";

/** What can be asked for at the top level and, overriding that, under `args.cni`. */
const settings = () => ({
  sysctl: v.optional(v.record(v.string())),
  mac: v.optional(mac()),
  promisc: v.optional(v.boolean()),
  mtu: v.optional(integer(0, 0x7fffffff)),
  allmulti: v.optional(v.boolean()),
  txQLen: v.optional(integer(0, 0xffffffff)),
});

/** What the plugin's README lists; unknown keys are ignored. */
export const TuningConf = confSchema({
  ...settings(),
  dataDir: v.optional(v.string(), ""),
  args: v.optional(v.looseObject({ cni: v.optional(v.looseObject(settings())) })),
  runtimeConfig: v.optional(v.looseObject({ mac: v.optional(mac()) })),
});

export type TuningConf = Infer<typeof TuningConf>;

/** Where the backups are: the reference's folder, and its way to read an empty name. */
export const dataDirOf = ({ dataDir }: TuningConf): string => dataDir || "/run/cni/tuning";
