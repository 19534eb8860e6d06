import { confSchema, dnsConf, type Infer, integer, ipamConf, mac, masqueradeKeys, mtu, v } from "@tscni/conf";
import { interfaceNameProblem } from "@tscni/types";

const off = () => v.optional(v.boolean(), false);
const vlanId = (min: number) => integer(min, 4094);

const bridgeName = v.check(v.string(), (name) => !interfaceNameProblem(name), "is not an interface name");

const trunkKeys = v.object({
  id: v.optional(vlanId(1)),
  minID: v.optional(vlanId(1)),
  maxID: v.optional(vlanId(1)),
});
const paired = v.check(
  trunkKeys,
  (e) => (e.minID === undefined) === (e.maxID === undefined),
  "must have minID and maxID together",
);
const ordered = v.check(paired, (e) => (e.minID ?? 0) <= (e.maxID ?? 0), "has a minID above its maxID");
const trunkEntry = v.check(
  ordered,
  (e) => e.id !== undefined || e.minID !== undefined,
  "has neither id nor minID and maxID",
);

const keys = confSchema({
  bridge: v.optional(bridgeName, "cni0"),
  isGateway: off(),
  isDefaultGateway: off(),
  forceAddress: off(),
  ...masqueradeKeys(),
  macspoofchk: off(),
  mtu: v.optional(mtu(), 0),
  hairpinMode: off(),
  promiscMode: off(),
  portIsolation: off(),
  vlan: v.optional(
    v.check(
      v.number(),
      (id) => Number.isInteger(id) && id >= 0 && id <= 4094,
      (id) => `invalid VLAN ID ${id} (must be between 0 and 4094)`,
      { type: "integer", minimum: 0, maximum: 4094 },
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
});

const oneMode = v.check(
  keys,
  (conf) => !(conf.hairpinMode && conf.promiscMode),
  "cannot set hairpin mode and promiscuous mode at the same time",
);

/** What the plugin's README lists; unknown keys are ignored. */
export const BridgeConf = v.check(
  oneMode,
  (conf) => !(conf.disableContainerInterface && conf.ipam?.type),
  "cannot use IPAM when DisableContainerInterface flag is set",
);

export type BridgeConf = Infer<typeof BridgeConf>;
