import { ip } from "./command.ts";
import type { TestNamespace } from "./namespace.ts";
import type { TestNode } from "./node.ts";

/**
 * A network that a node is on by its interface `eth0`: another namespace, on it by `uplink`, with the addresses
 * given. IPv6 ones are ready at once.
 */
export function makeLan(node: TestNode, ...addresses: string[]): TestNamespace {
  const lan = node.container();
  node.host.run("ip", "link", "add", "eth0", "type", "veth", "peer", "uplink", "netns", lan.path);
  node.host.run("ip", "link", "set", "eth0", "up");
  lan.run("ip", "link", "set", "uplink", "up");
  for (const address of addresses) addAddress(lan, "uplink", address);
  return lan;
}

export function addAddress(ns: TestNamespace, dev: string, address: string): void {
  ns.run("ip", "addr", "add", address, "dev", dev, ...(address.includes(":") ? ["nodad"] : []));
}

/** Whether one ping is answered within a second. */
export function pings(from: TestNamespace, address: string, ...options: string[]): boolean {
  try {
    return from.run("ping", "-c1", "-W1", ...options, address).includes(" 1 received");
  } catch {
    return false;
  }
}

/** The names of a namespace's links, in order. */
export const namesIn = (ns: TestNamespace): string[] =>
  ip(ns, "link")
    .map((link) => link.ifname)
    .toSorted();
