import {
  type Cidr,
  cidrsOverlap,
  cidrText,
  defaultCidr,
  type Ip,
  ipEquals,
  ipPlus,
  ipText,
  networkOf,
  parseIp,
} from "@tscni/addr";
import {
  assignAddress,
  cidrOf,
  enableForwarding,
  ensureSysctl,
  hostInterfaceName,
  waitUntilUsable,
} from "@tscni/ip";
import {
  addLink,
  deleteAddress,
  getLink,
  IFA_F_NODAD,
  type Link,
  listAddresses,
  type Netlink,
  NetlinkError,
  setLink,
} from "@tscni/netlink";
import {
  CniError,
  ErrorCode,
  type IpConfig,
  interfaceNameProblem,
  type Result,
  type Route,
} from "@tscni/types";
import type { BridgeConf } from "./conf.ts";
import { joinPort } from "./port.linux.ts";

const isGateway = (conf: BridgeConf): boolean => conf.isGateway || conf.isDefaultGateway;

/** The lease with the bridge as gateway: the subnet's first address where IPAM named none, and default routes. */
export function withGateways(lease: Result, conf: BridgeConf): Result {
  if (!isGateway(conf)) return lease;
  const ips = lease.ips.map((ip): IpConfig => ({ ...ip, gateway: ip.gateway ?? firstHostOf(ip.address) }));
  const routes: Route[] = [...lease.routes];
  for (const family of conf.isDefaultGateway ? ([4, 6] as const) : []) {
    const gateway = ips.find((ip) => cidrOf(ip.address).ip.family === family)?.gateway;
    const dst = cidrText(defaultCidr(family));
    const present = routes.some((r) => r.gw !== undefined && cidrText(cidrOf(r.dst)) === dst);
    if (gateway !== undefined && !present) routes.push({ dst, gw: gateway });
  }
  return { ...lease, ips, routes };
}

const firstHostOf = (address: string): string => ipText(ipPlus(networkOf(cidrOf(address)).ip, 1n));

/** Makes the host the gateway: its addresses on the bridge (or the bridge's VLAN), and forwarding. */
export function ensureGateways(
  host: Netlink,
  bridge: Link,
  result: Result,
  conf: BridgeConf,
): Link | undefined {
  if (!isGateway(conf)) return undefined;
  const onVlan = conf.vlan > 0 ? ensureVlanGateway(host, bridge, conf) : undefined;
  for (const { address, gateway } of result.ips) {
    const ip = gateway === undefined ? undefined : parseIp(gateway);
    if (ip === undefined) continue;
    ensureAddress(host, onVlan ?? bridge, { ip, prefix: cidrOf(address).prefix }, conf);
    enableForwarding(host, ip.family);
  }
  return onVlan;
}

/** Waits until the host takes what is sent to its IPv6 addresses as a gateway, and can ask for neighbours. */
export function waitForGateways(host: Netlink, { index }: Link, { ips }: Result, conf: BridgeConf): void {
  if (!isGateway(conf)) return;
  const own = ips.map(({ gateway }) => parseIp(gateway ?? "")).filter((ip) => ip?.family === 6);
  if (own.length > 0) waitUntilUsable(host, index, own as Ip[], { linkLocal: true });
}

/**
 * Puts a gateway's address on its link. Another IPv4 address there, or an IPv6 one of an overlapping subnet,
 * is an error, or with forceAddress replaced.
 */
function ensureAddress(host: Netlink, link: Link, wanted: Cidr, conf: BridgeConf): void {
  const { index } = link;
  for (const { cidr } of listAddresses(host, { index, family: wanted.ip.family })) {
    if (ipEquals(cidr.ip, wanted.ip) && cidr.prefix === wanted.prefix) return;
    if (wanted.ip.family === 6 && !cidrsOverlap(cidr, wanted)) continue;
    if (!conf.forceAddress)
      throw new CniError(
        ErrorCode.Internal,
        `"${link.name}" already has an IP address different from ${cidrText(wanted)}`,
        { details: `it has ${cidrText(cidr)}; set "forceAddress" to replace it, or use another "bridge"` },
      );
    unlessDone("EADDRNOTAVAIL", () => deleteAddress(host, { index, cidr }));
  }
  if (wanted.ip.family === 6) ensureSysctl(`net/ipv6/conf/${link.name}/disable_ipv6`, "0");
  unlessDone("EEXIST", () => assignAddress(host, index, wanted, conf.enabledad ? 0 : IFA_F_NODAD));
  // A bridge that somebody else made takes its lowest port's address until it is given one.
  if (link.address !== undefined) setLink(host, { index }, { address: link.address });
}

/** Runs a step that another ADD may be doing, too; the error tells that it was first. */
function unlessDone(error: string, step: () => void): void {
  try {
    step();
  } catch (thrown) {
    if (!(thrown instanceof NetlinkError && thrown.code === error)) throw thrown;
  }
}

/**
 * The gateway's interface in a VLAN: a veth pair `<bridge>.<vlan>` whose other end is a port of the bridge with
 * that VLAN. It stays, like the bridge. The port is made in the bridge, and its VLAN set by every ADD, so that
 * it does no harm when one of them is killed in between.
 */
function ensureVlanGateway(host: Netlink, bridge: Link, conf: BridgeConf): Link {
  const name = `${conf.bridge}.${conf.vlan}`;
  const problem = interfaceNameProblem(name);
  if (problem) throw new CniError(ErrorCode.InvalidNetworkConfig, `the VLAN's gateway "${name}": ${problem}`);
  if (getLink(host, { name }) === undefined)
    unlessDone("EEXIST", () => createVlanGateway(host, bridge, name));
  const gateway = getLink(host, { name });
  const port = gateway?.link === undefined ? undefined : getLink(host, { index: gateway.link });
  if (gateway === undefined || port?.master !== bridge.index)
    throw new CniError(
      ErrorCode.Internal,
      `"${name}" already exists but is not a VLAN gateway of "${bridge.name}"`,
    );
  joinPort(host, port.index, { ...conf, hairpinMode: false, portIsolation: false, vlanTrunk: [] });
  if (!gateway.up) setLink(host, { index: gateway.index }, { up: true });
  return gateway;
}

function createVlanGateway(host: Netlink, bridge: Link, name: string): void {
  // Not named as a container's port is, or GC would take it for one.
  const port = hostInterfaceName({ network: "", containerId: "", ifName: name }).replace("veth", "vlgw");
  const master = bridge.index;
  addLink(host, { kind: "veth", name: port, up: true, master, veth: { peer: { name } } });
}
