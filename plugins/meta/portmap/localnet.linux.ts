import { ensureSysctl, readSysctl } from "@tscni/ip";
import { getLink, getRoute, openRoute } from "@tscni/netlink";
import { CniError, ErrorCode, messageOf } from "@tscni/types";
import { addressOf, ipOf, type Target } from "./mapping.ts";

/**
 * Lets packets from 127.0.0.1 go by the interface that leads to the container, so that the host reaches its ports at
 * that address. Not where the container is behind a gateway, since that way the host's loopback would be open to others.
 */
export function routeLocalnet(target: Target): void {
  const name = interfaceTo(target);
  if (name === undefined) return;
  try {
    ensureSysctl(`net/ipv4/conf/${name}/route_localnet`, "1");
  } catch (error) {
    throw new CniError(ErrorCode.Internal, `unable to enable route_localnet: ${messageOf(error)}`);
  }
}

/** The host's interface that a target is connected to; undefined when there is none. */
function interfaceTo(target: Target): string | undefined {
  using host = openRoute();
  try {
    const { gateway, index } = getRoute(host, ipOf(target));
    return gateway !== undefined || index === undefined ? undefined : getLink(host, { index })?.name;
  } catch {
    return undefined; // no way to it from here
  }
}

/** CHECK's part. Throws where the host can't reach a target from 127.0.0.1. */
export function verifyLocalnet(target: Target): void {
  const name = interfaceTo(target);
  if (name !== undefined && readSysctl(`net/ipv4/conf/${name}/route_localnet`) !== "1")
    throw new CniError(
      ErrorCode.Internal,
      `net.ipv4.conf.${name}.route_localnet is off, so that ports of ${addressOf(target)} are not at 127.0.0.1`,
    );
}
