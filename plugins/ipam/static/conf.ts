import { parseCidr } from "@tscni/addr";
import { cidr, confSchema, dnsConf, type Infer, ipAddress, routeConf, v } from "@tscni/conf";

const address = () => v.object({ address: cidr(), gateway: v.optional(ipAddress()) });

/** An address that the runtime asks for; without a prefix length nobody would know its network. */
const requested = () =>
  v.array(
    v.check(
      v.string(),
      (text) => parseCidr(text) !== undefined,
      (text) => `an entry in the 'ips' field is NOT in CIDR notation, got: '${text}'`,
    ),
  );

/** What the plugin's README lists; unknown keys are ignored. */
export const StaticConf = confSchema({
  ipam: v.optional(
    v.object({
      type: v.optional(v.string()),
      addresses: v.optional(v.array(address()), []),
      routes: v.optional(v.array(routeConf()), []),
      dns: v.optional(dnsConf(), {}),
    }),
  ),
  runtimeConfig: v.optional(v.looseObject({ ips: v.optional(requested()) })),
  args: v.optional(v.looseObject({ cni: v.optional(v.looseObject({ ips: v.optional(requested()) })) })),
});

export type StaticConf = Infer<typeof StaticConf>;
