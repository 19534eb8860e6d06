import { ip } from "./command.ts";
import type { TestNamespace } from "./namespace.ts";
import type { TestNode } from "./node.ts";

/**
 * A network that a node is on by its interface `eth0`: another namespace, on it by `uplink`, with the addresses
 * given. IPv6 ones are ready at once.
 */
export function makeLan(node: TestNode, ...addresses: string[]): TestNamespace {
  const lan = node.container();
  runLines(
    node.host,
    `ip link add eth0 type veth peer uplink netns ${lan.path}`,
    "ip link set eth0 up",
    `nsenter --net=${lan.path} ip link set uplink up`,
  );
  if (addresses.length > 0) runLines(lan, ...addresses.map((address) => addressLine("uplink", address)));
  return lan;
}

/** Runs lines of shell in one process, which in the virtual machine takes a fraction of one each. */
const runLines = (ns: TestNamespace, ...lines: string[]): string => ns.run("sh", "-ec", lines.join("\n"));

const addressLine = (dev: string, address: string): string =>
  `ip addr add ${address} dev ${dev} ${address.includes(":") ? "nodad" : ""}`;

/** Adds an address, an IPv6 one without detection of duplicates. */
export function addAddress(ns: TestNamespace, dev: string, address: string): void {
  runLines(ns, addressLine(dev, address));
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
