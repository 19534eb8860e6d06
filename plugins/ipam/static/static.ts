import { cidrText, ipText, parseIp } from "@tscni/addr";
import { routesOf } from "@tscni/conf";
import { type Call, definePlugin } from "@tscni/skel";
import { CniError, type Dns, ErrorCode, type IpConfig, type Result } from "@tscni/types";
import { addressesOf } from "./addresses.ts";
import { StaticConf } from "./conf.ts";

type StaticCall = Call<StaticConf>;

/** Addresses that somebody has already decided on. Nothing is remembered: the config says it all. */
export default definePlugin({
  name: "static",
  about: "hands out the addresses that the config or the runtime names",
  conf: StaticConf,

  add(call): Result {
    return {
      interfaces: [],
      ips: ipsOf(call),
      routes: routesOf(call.conf.ipam?.routes),
      dns: (call.conf.ipam?.dns ?? {}) as Dns,
    };
  },

  /** Nothing was reserved. */
  del() {},

  check(call) {
    const wanted = ipsOf(call);
    if (call.prevResult === undefined)
      throw new CniError(ErrorCode.InvalidNetworkConfig, "Required prevResult missing");
    for (const { address, gateway } of wanted) verifyIp(call.prevResult.ips, address, gateway);
  },

  /** Whether the addresses of the config can be handed out; the runtime's come with each ADD. */
  status(call) {
    ipsOf(call);
  },

  /** Nothing to collect. */
  gc() {},
});

const ipsOf = ({ conf, args, cniVersion }: StaticCall): IpConfig[] =>
  addressesOf(conf, args, cniVersion).map(({ cidr, gateway }) => ({
    address: cidrText(cidr),
    ...(gateway ? { gateway: ipText(gateway) } : {}),
  }));

/** A gateway that the config does not say may be the main plugin's. */
function verifyIp(ips: readonly IpConfig[], address: string, gateway: string | undefined): void {
  const found = ips.find((ip) => ip.address === address);
  if (found === undefined)
    throw new CniError(ErrorCode.Internal, `static: prevResult lacks the address ${address}`);
  const present = found.gateway === undefined ? undefined : parseIp(found.gateway);
  if (gateway !== undefined && (present === undefined || ipText(present) !== gateway))
    throw new CniError(
      ErrorCode.Internal,
      `static: the gateway of ${address} in prevResult is ${found.gateway ?? "missing"}, not ${gateway}`,
    );
}
