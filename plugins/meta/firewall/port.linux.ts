import { mismatch } from "@tscni/ip";
import { getLink, type Link, type Netlink, openRoute, setPort } from "@tscni/netlink";
import type { Result } from "@tscni/types";

/*
 * Frames between ports of one bridge pass no rule of iptables or nftables unless br_netfilter is loaded. So isolated
 * containers are kept apart by the bridge itself, whose isolated ports reach only those that are not.
 */

/** The host's ends of the result that are ports of the bridge. */
function portsOf(host: Netlink, result: Result, bridgeName: string): Link[] {
  const bridge = getLink(host, { name: bridgeName });
  if (bridge === undefined) return [];
  return result.interfaces
    .filter(({ name, sandbox }) => !sandbox && name !== bridgeName)
    .map(({ name }) => getLink(host, { name }))
    .filter((link) => link !== undefined)
    .filter((link) => link.master === bridge.index);
}

/** Isolates the container's port; returns the way back. A network without a bridge has none, which is fine. */
export function isolatePorts(result: Result, bridge: string): () => void {
  using host = openRoute();
  const changed = portsOf(host, result, bridge).filter(({ port }) => port?.isolated === false);
  for (const { index } of changed) setPort(host, { index }, { isolated: true });
  return () => {
    using again = openRoute();
    for (const { index } of changed)
      if (getLink(again, { index }) !== undefined) setPort(again, { index }, { isolated: false });
  };
}

/** Throws CniError when the container's port is not isolated. */
export function verifyIsolated(result: Result, bridge: string): void {
  using host = openRoute();
  const open = portsOf(host, result, bridge).find(({ port }) => port?.isolated === false);
  if (open !== undefined) throw mismatch(`the port ${open.name} of ${bridge} is not isolated`);
}
