import { parseCidr, parseIp } from "@tscni/addr";
import { cidr, confSchema, type Infer, integer, ipAddress, routeConf, v } from "@tscni/conf";

export const defaultDataDir = "/var/lib/cni/networks";

const rangeKeys = {
  /** Addresses are handed out with this prefix length. */
  subnet: cidr(),
  /** First address to hand out; default: the subnet's first. */
  rangeStart: v.optional(ipAddress()),
  /** Last address to hand out; default: the subnet's last (IPv4: the one before broadcast). */
  rangeEnd: v.optional(ipAddress()),
  /** Never handed out; default: the subnet's first address. */
  gateway: v.optional(ipAddress()),
};

const range = () => v.object(rangeKeys);

/** An address with or without prefix length; the length is not looked at. */
const requestedIp = () =>
  v.check(
    v.string(),
    (text) => (text.includes("/") ? parseCidr(text)?.ip : parseIp(text)) !== undefined,
    "is not an IP address",
  );

/** Options of host-local; the README's table says them in words. */
export const HostLocalConf = confSchema({
  ipam: v.optional(
    v.object({
      type: v.optional(v.string()),
      ...rangeKeys,
      subnet: v.optional(cidr()),
      /** One address from each set; a set is a pool of ranges of one family. */
      ranges: v.optional(v.array(v.array(range()))),
      routes: v.optional(v.array(routeConf())),
      /** Folder of the reservations, one folder a network in it. "" for the default. */
      dataDir: v.optional(v.string(), ""),
      /** A file whose name servers go into the result. */
      resolvConf: v.optional(v.string(), ""),
      /** Seconds for which a released address is not handed out again. */
      cooldown: v.optional(integer(0), 0),
      /** Whether STATUS fails when a pool has no free address. */
      reportExhausted: v.optional(v.boolean(), false),
    }),
  ),
  runtimeConfig: v.optional(
    v.looseObject({
      /** go-cni sends a flat list of ranges, one a set; everyone else a list of sets. */
      ipRanges: v.optional(v.array(v.union([v.array(range()), range()]))),
      ips: v.optional(v.array(requestedIp())),
    }),
  ),
  args: v.optional(
    v.looseObject({ cni: v.optional(v.looseObject({ ips: v.optional(v.array(requestedIp())) })) }),
  ),
});

export type HostLocalConf = Infer<typeof HostLocalConf>;
export type RangeConf = Infer<ReturnType<typeof range>>;
