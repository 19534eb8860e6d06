import type { JsonObject, RuntimeConf } from "@tscni/libcni";
import type { Network } from "./networks.ts";

/** A port of the host that leads to one of the container. */
export interface PortMapping {
  hostPort: number;
  containerPort: number;
  protocol: "tcp" | "udp" | "sctp";
  /** An address of the host; all of them when absent. */
  hostIP?: string;
}

/** Where addresses may come from, as host-local has it. */
export interface IpRange {
  /** CIDR */
  subnet: string;
  rangeStart?: string;
  rangeEnd?: string;
  gateway?: string;
}

/** Bits per second, and bits. A rate goes with a burst. */
export interface Bandwidth {
  ingressRate?: number;
  ingressBurst?: number;
  egressRate?: number;
  egressBurst?: number;
}

export interface DnsCapability {
  servers?: readonly string[];
  searches?: readonly string[];
  options?: readonly string[];
}

/** What the program wants of the networks for one container. Plugins get those capabilities that their config declares. */
export interface ContainerOptions {
  portMappings?: readonly PortMapping[];
  /**
   * Sets of ranges, one address out of each set; or ranges, of which those of one family are a set, since an address
   * out of each family is what such a list can mean.
   */
  ipRanges?: readonly (readonly IpRange[])[] | readonly IpRange[];
  bandwidth?: Bandwidth;
  dns?: DnsCapability;
  cgroupPath?: string;
  /** Addresses that the container shall have, with or without a prefix length (static, host-local). */
  ips?: readonly string[];
  mac?: string;
  infinibandGUID?: string;
  /** A device that was set aside for the container (host-device): its PCI address or auxiliary bus name. */
  deviceID?: string;
  /** Names for the container on each network, by the network's name (dnsname). */
  aliases?: Readonly<Record<string, readonly string[]>>;
  /** Any other capability, by its name. */
  capabilities?: Readonly<Record<string, unknown>>;
  /** CNI_ARGS. Kubernetes' runtimes pass K8S_POD_NAME and others, with IgnoreUnknown=1. */
  labels?: Readonly<Record<string, string>>;
}

/** The container on one network, as libcni wants it. */
export function runtimeConfOf(
  container: { id: string; netns: string },
  { ifName }: Network,
  options: ContainerOptions,
): RuntimeConf {
  return {
    containerId: container.id,
    netns: container.netns,
    ifName,
    args: Object.entries(options.labels ?? {}),
    capabilityArgs: capabilitiesOf(options),
  };
}

/** By the names of https://www.cni.dev/docs/conventions/#dynamic-plugin-specific-fields-capabilities--runtime-configuration */
const wellKnown = [
  "portMappings",
  "bandwidth",
  "dns",
  "cgroupPath",
  "ips",
  "mac",
  "infinibandGUID",
  "deviceID",
  "aliases",
] as const satisfies readonly (keyof ContainerOptions)[];

function capabilitiesOf(options: ContainerOptions): JsonObject {
  const given = wellKnown.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]);
  const { ipRanges, capabilities } = options;
  return {
    ...Object.fromEntries(given),
    ...(ipRanges === undefined ? {} : { ipRanges: rangeSetsOf(ipRanges) }),
    ...capabilities,
  };
}

function rangeSetsOf(ranges: NonNullable<ContainerOptions["ipRanges"]>): readonly (readonly IpRange[])[] {
  if (!ranges.some((range) => "subnet" in range)) return ranges as readonly (readonly IpRange[])[];
  const flat = ranges as readonly IpRange[];
  const isV6 = ({ subnet }: IpRange) => subnet.includes(":");
  return [flat.filter((range) => !isV6(range)), flat.filter(isV6)].filter((set) => set.length > 0);
}
