import { run } from "./command.ts";

/** What some kernels are built without: the option that it takes, and how to find out in a namespace of one's own. */
const features = {
  dummy: ["CONFIG_DUMMY", "ip link add probe type dummy"],
  vlan: ["CONFIG_VLAN_8021Q", "ip link add probe link below type vlan id 5"],
  ipvlan: ["CONFIG_IPVLAN", "ip link add probe link below type ipvlan"],
  vrf: ["CONFIG_NET_VRF", "ip link add probe type vrf table 5"],
  sctp: [
    "CONFIG_IP_SCTP",
    "socat -u OPEN:/dev/null SCTP4:127.0.0.1:1 2>/dev/null; grep -q '^SCTP ' /proc/net/protocols",
  ],
  /** Of the virtual machine alone: no test takes the card of the machine that it runs on. */
  "a network card to spare": [
    "QEMU's e1000",
    "/run/vm/modprobe e1000 && ls /sys/bus/pci/drivers/e1000/*/net",
  ],
  "bridge VLAN filtering": ["CONFIG_BRIDGE_VLAN_FILTERING", "ip link add probe type bridge vlan_filtering 1"],
} as const;

export type KernelFeature = keyof typeof features;

/** Begins the reason of every test that is skipped for it; scripts/test runs those in a virtual machine. */
const reason = "the kernel lacks";

/**
 * Says what a test, or in `beforeEach` every test of a file, needs of the kernel; where that is missing, the test is
 * skipped here and its file run on a whole kernel (test/vm). Keep what needs none of it in files of its own.
 */
export function needs(test: { skip(note?: string): never }, ...names: KernelFeature[]): void {
  for (const name of names) if (!has(name)) test.skip(`${reason} ${name} (${features[name][0]})`);
}

const known = new Map<string, boolean>();

function has(name: KernelFeature): boolean {
  const found = known.get(name) ?? tried(features[name][1]);
  known.set(name, found);
  return found;
}

function tried(command: string): boolean {
  try {
    run("unshare", "-n", "sh", "-c", `ip link add below type veth && ${command} 2>&1`);
    return true;
  } catch {
    return false;
  }
}
