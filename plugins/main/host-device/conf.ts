import { confSchema, dnsConf, type Infer, ipamConf, v } from "@tscni/conf";

/** The name of a device below a folder of /sys; never a path. */
const busId = () =>
  v.check(v.string(), (id) => !id.includes("/") && id !== "." && id !== "..", "is not a device's id");

/** A link-layer address of any length: Ethernet has 6 bytes, InfiniBand 20. "" counts as absent. */
const linkAddress = v.check(
  v.string(),
  (text) => /^([0-9a-f]{2}([:-][0-9a-f]{2})*)?$/i.test(text),
  "is not a MAC address",
);

/** What the plugin's README lists; unknown keys are ignored. */
export const HostDeviceConf = confSchema({
  device: v.optional(v.string(), ""),
  hwaddr: v.optional(linkAddress, ""),
  kernelpath: v.optional(v.string(), ""),
  pciBusID: v.optional(busId(), ""),
  ipam: v.optional(ipamConf()),
  dns: v.optional(dnsConf()),
  runtimeConfig: v.optional(v.looseObject({ deviceID: v.optional(busId()) })),
});

export type HostDeviceConf = Infer<typeof HostDeviceConf>;
