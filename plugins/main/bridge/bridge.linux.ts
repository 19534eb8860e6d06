import { hostInterfaceOf, mismatch, verifyMac, writeSysctlIfPresent } from "@tscni/ip";
import { createLink, getLink, type Link, type Netlink, NetlinkError, setLink } from "@tscni/netlink";
import { CniError, ErrorCode, type Result } from "@tscni/types";
import type { BridgeConf } from "./conf.ts";

/**
 * The network's bridge, made if there is none, and up. Any number of processes may do this at once: one makes
 * it, the others find it. Throws when the name belongs to another kind of link.
 */
export function ensureBridge(host: Netlink, conf: BridgeConf): Link {
  const bridge = getLink(host, { name: conf.bridge }) ?? createOrFindBridge(host, conf);
  if (bridge.kind !== "bridge") throw notABridge(bridge, ErrorCode.Internal);
  // While a link-local address waits for its duplicate, the kernel asks for no neighbour of a packet that it forwards:
  // for more than a second, other machines could not reach the first container of a new bridge over IPv6.
  if (!bridge.up && !conf.enabledad) writeSysctlIfPresent(`net/ipv6/conf/${conf.bridge}/accept_dad`, "0");
  const promisc = conf.promiscMode && !bridge.promisc;
  if (!bridge.up || promisc)
    setLink(host, { index: bridge.index }, { up: true, ...(promisc ? { promisc } : {}) });
  writeSysctlIfPresent(`net/ipv6/conf/${conf.bridge}/accept_ra`, "0");
  return bridge;
}

/** STATUS's part: throws code 50 when the name belongs to another kind of link; no bridge yet is fine. */
export function verifyBridgeName(host: Netlink, conf: BridgeConf): void {
  const found = getLink(host, { name: conf.bridge });
  if (found && found.kind !== "bridge") throw notABridge(found, ErrorCode.PluginNotAvailable);
}

const notABridge = ({ name, kind }: Link, code: number): CniError =>
  new CniError(code, `"${name}" already exists but is not a bridge`, {
    details: `it is of kind ${kind ?? "none"}; choose another name in the key "bridge"`,
  });

function createOrFindBridge(host: Netlink, conf: BridgeConf): Link {
  try {
    return createLink(host, {
      kind: "bridge",
      name: conf.bridge,
      // Given an address, the bridge keeps it whichever ports come and go.
      address: randomMac(),
      ...(conf.mtu > 0 ? { mtu: conf.mtu } : {}),
      bridge: usesVlans(conf) ? { vlanFiltering: true } : {},
    });
  } catch (error) {
    const found =
      error instanceof NetlinkError && error.code === "EEXIST"
        ? getLink(host, { name: conf.bridge })
        : undefined;
    if (found === undefined) throw error;
    return found;
  }
}

export const usesVlans = (conf: BridgeConf): boolean => conf.vlan > 0 || conf.vlanTrunk.length > 0;

/** A random address that is unicast and locally administered (IEEE 802). */
function randomMac(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(6));
  bytes[0] = (bytes[0]! & 0xfc) | 2;
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(":");
}

/** CHECK's part: the bridge of the result is there, a bridge, and has the address and mode that ADD left. */
export function verifyBridge(host: Netlink, conf: BridgeConf, result: Result): Link {
  const expected = hostInterfaceOf(result, conf.bridge);
  const bridge = getLink(host, { name: conf.bridge });
  if (bridge === undefined) throw mismatch(`bridge ${conf.bridge} is missing`);
  if (bridge.kind !== "bridge") throw mismatch(`interface ${conf.bridge} is not a bridge`);
  verifyMac(`bridge ${conf.bridge}`, bridge, expected);
  if (conf.promiscMode && !bridge.promisc) throw mismatch(`bridge ${conf.bridge} is not in promiscuous mode`);
  return bridge;
}
