import { confSchema, dnsConf, integer, ipamConf, mac } from "@tscni/conf";
import * as v from "valibot";

const off = () => v.optional(v.boolean(), false);
const vlanId = (min: number) => integer(min, 4094);

const trunkEntry = v.pipe(
  v.object({ id: v.optional(vlanId(1)), minID: v.optional(vlanId(1)), maxID: v.optional(vlanId(1)) }),
  v.check((e) => (e.minID === undefined) === (e.maxID === undefined), "must have minID and maxID together"),
  v.check((e) => e.minID === undefined || e.minID <= e.maxID!, "has a minID above its maxID"),
  v.check((e) => e.id !== undefined || e.minID !== undefined, "has neither id nor minID and maxID"),
);

/** What the plugin's README lists; unknown keys are ignored. */
export const BridgeConf = v.pipe(
  confSchema({
    bridge: v.optional(v.string(), "cni0"),
    isGateway: off(),
    isDefaultGateway: off(),
    forceAddress: off(),
    mtu: v.optional(integer(0), 0),
    hairpinMode: off(),
    promiscMode: off(),
    portIsolation: off(),
    vlan: v.optional(
      v.pipe(
        v.number(),
        v.check(
          (id) => Number.isInteger(id) && id >= 0 && id <= 4094,
          (issue) => `invalid VLAN ID ${issue.input} (must be between 0 and 4094)`,
        ),
      ),
      0,
    ),
    vlanTrunk: v.optional(v.array(trunkEntry), []),
    preserveDefaultVlan: off(),
    enabledad: off(),
    disableContainerInterface: off(),
    ipam: v.optional(ipamConf()),
    dns: v.optional(dnsConf()),
    args: v.optional(v.looseObject({ cni: v.optional(v.looseObject({ mac: v.optional(mac()) })) })),
    runtimeConfig: v.optional(v.looseObject({ mac: v.optional(mac()) })),
  }),
  v.check(
    (conf) => !(conf.hairpinMode && conf.promiscMode),
    "cannot set hairpin mode and promiscuous mode at the same time",
  ),
  v.check(
    (conf) => !(conf.disableContainerInterface && conf.ipam?.type),
    "cannot use IPAM when DisableContainerInterface flag is set",
  ),
);

export type BridgeConf = v.InferOutput<typeof BridgeConf>;
