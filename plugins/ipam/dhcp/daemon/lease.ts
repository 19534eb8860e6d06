import type { LeaseResult } from "../protocol.ts";
import { type Ipv4, ipv4Text, isHostAddress, prefixOfMask } from "../wire/ipv4.ts";
import type { Message } from "../wire/message.ts";
import { domainOption, searchOption } from "../wire/names.ts";
import { addressesOption, Malformed, Option, uint32Option } from "../wire/options.ts";
import { routesOf } from "../wire/routes.ts";

/** A lease as a server gave it. Times are the loop's; one that never comes is null, as JSON has no infinity. */
export interface Lease {
  address: Ipv4;
  server: Ipv4;
  /** Where the server's answer came from: the server, or the router before it. */
  serverMac?: string;
  result: LeaseResult;
  renewAtMs: number | null;
  rebindAtMs: number | null;
  expireAtMs: number | null;
}

const defaultSeconds = 3600;
const infinite = 0xffffffff;

/**
 * Reads the lease out of an ACK to a request that was sent at `sentAtMs`, from when its time counts (RFC 2131
 * section 4.4.1). A server that leaves out its id, as some do when they renew, is still the one of before. Throws
 * Malformed.
 */
export function leaseOf(ack: Message, sentAtMs: number, before?: Pick<Lease, "server" | "serverMac">): Lease {
  const { options, yiaddr } = ack;
  if (!isHostAddress(yiaddr)) throw new Malformed(`${ipv4Text(yiaddr)} is no address for a host`);
  const server = uint32Option(options, Option.ServerId) ?? before?.server;
  if (server === undefined) throw new Malformed("no server identifier");
  return {
    address: yiaddr,
    server,
    ...(before?.serverMac === undefined ? {} : { serverMac: before.serverMac }),
    result: resultOf(ack),
    ...timesOf(ack, sentAtMs),
  };
}

/** T1 and T2 are half and seven eighths of the time unless the server says something that makes sense. */
function timesOf(
  { options }: Message,
  sentAtMs: number,
): Pick<Lease, "renewAtMs" | "rebindAtMs" | "expireAtMs"> {
  const seconds = uint32Option(options, Option.LeaseTime) ?? defaultSeconds;
  if (seconds === 0) throw new Malformed("a lease of 0 seconds");
  if (seconds === infinite) return { renewAtMs: null, rebindAtMs: null, expireAtMs: null };
  let renew = uint32Option(options, Option.RenewalTime) ?? seconds / 2;
  let rebind = uint32Option(options, Option.RebindingTime) ?? (seconds * 7) / 8;
  if (rebind > seconds) rebind = (seconds * 7) / 8;
  if (renew > rebind) renew = Math.min(seconds / 2, rebind);
  const [renewAtMs, rebindAtMs, expireAtMs] = [renew, rebind, seconds].map((s) => sentAtMs + s * 1000);
  return { renewAtMs: renewAtMs!, rebindAtMs: rebindAtMs!, expireAtMs: expireAtMs! };
}

function resultOf({ options, yiaddr }: Message): LeaseResult {
  const mask = uint32Option(options, Option.SubnetMask);
  if (mask === undefined) throw new Malformed("DHCP option Subnet Mask not found in DHCPACK");
  const prefix = prefixOfMask(mask);
  if (prefix === undefined) throw new Malformed(`${ipv4Text(mask)} is no subnet mask`);
  const [gateway] = addressesOption(options, Option.Router);
  const nameservers = addressesOption(options, Option.DomainNameServer).filter(isHostAddress).map(ipv4Text);
  const domain = domainOption(options);
  const search = searchOption(options);
  return {
    ip: {
      address: `${ipv4Text(yiaddr)}/${prefix}`,
      ...(gateway === undefined ? {} : { gateway: ipv4Text(gateway) }),
    },
    routes: routesOf(options),
    dns: {
      ...(nameservers.length > 0 ? { nameservers } : {}),
      ...(domain === undefined ? {} : { domain }),
      ...(search.length > 0 ? { search } : {}),
    },
  };
}
