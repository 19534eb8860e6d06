import { bool, i32, ip, mac, u8, u16, u16be, u32, u32be } from "../codecs.ts";
import { Attributes, each, headed, Struct } from "../table.ts";
import { flatLink, ifinfomsg } from "./link-flat.ts";

const vlanFlags = new Struct({ flags: u32, mask: u32 });
const qosMapping = new Struct({ from: u32, to: u32 });
const portRange = new Struct({ low: u16be, high: u16be });

const qosMap = new Attributes(() => ({ mapping: [1, each(qosMapping)] }));

/**
 * IFLA_INFO_DATA by IFLA_INFO_KIND, linux/if_link.h and linux/veth.h. Times of a bridge are in units of 1/100 s
 * (USER_HZ). A kind without own options has an empty table.
 */
export const kinds = {
  veth: new Attributes(() => ({ peer: [1, headed(ifinfomsg, flatLink)] })),
  bridge: new Attributes(() => ({
    forwardDelay: [1, u32],
    helloTime: [2, u32],
    maxAge: [3, u32],
    ageingTime: [4, u32],
    stpState: [5, u32],
    priority: [6, u16],
    vlanFiltering: [7, bool],
    vlanProtocol: [8, u16be],
    groupFwdMask: [9, u16],
    groupAddress: [20, mac],
    multicastRouter: [22, u8],
    multicastSnooping: [23, bool],
    multicastQuerier: [25, bool],
    nfCallIptables: [36, bool],
    nfCallIp6tables: [37, bool],
    nfCallArptables: [38, bool],
    vlanDefaultPvid: [39, u16],
    vlanStatsEnabled: [41, bool],
  })),
  vlan: new Attributes(() => ({
    id: [1, u16],
    flags: [2, vlanFlags],
    egressQos: [3, qosMap],
    ingressQos: [4, qosMap],
    protocol: [5, u16be],
  })),
  /** mode: MACVLAN_MODE_* (1 private, 2 vepa, 4 bridge, 8 passthru, 16 source). */
  macvlan: new Attributes(() => ({
    mode: [1, u32],
    flags: [2, u16],
    bcQueueLen: [7, u32],
    bcQueueLenUsed: [8, u32],
  })),
  /** mode: IPVLAN_MODE_* (0 l2, 1 l3, 2 l3s). */
  ipvlan: new Attributes(() => ({ mode: [1, u16], flags: [2, u16] })),
  vxlan: new Attributes(() => ({
    id: [1, u32],
    group: [2, ip],
    link: [3, u32],
    local: [4, ip],
    ttl: [5, u8],
    tos: [6, u8],
    learning: [7, bool],
    ageing: [8, u32],
    limit: [9, u32],
    portRange: [10, portRange],
    proxy: [11, bool],
    port: [15, u16be],
    group6: [16, ip],
    local6: [17, ip],
    udpCsum: [18, bool],
    udpZeroCsum6Tx: [19, bool],
    udpZeroCsum6Rx: [20, bool],
    label: [26, u32be],
  })),
  dummy: new Attributes(() => ({})),
  ifb: new Attributes(() => ({})),
  vrf: new Attributes(() => ({ table: [1, u32] })),
  /** Read only: tun and tap devices are made through /dev/net/tun. type: IFF_TUN 1, IFF_TAP 2. */
  tun: new Attributes(() => ({
    owner: [1, u32],
    group: [2, u32],
    type: [3, u8],
    packetInfo: [4, bool],
    vnetHeader: [5, bool],
    persist: [6, bool],
    multiQueue: [7, bool],
    queues: [8, u32],
    disabledQueues: [9, u32],
  })),
} as const;

/** IFLA_INFO_SLAVE_DATA by IFLA_INFO_SLAVE_KIND: what a link is to its master. */
export const slaveKinds = {
  /** IFLA_BRPORT_*, linux/if_link.h. `state`: BR_STATE_* (0 disabled … 3 forwarding). */
  bridge: new Attributes(() => ({
    state: [1, u8],
    priority: [2, u16],
    cost: [3, u32],
    /** IFLA_BRPORT_MODE: frames may leave by the port they came in by. */
    hairpin: [4, bool],
    /** BPDU guard. */
    guard: [5, bool],
    /** Root block. */
    protect: [6, bool],
    fastLeave: [7, bool],
    learning: [8, bool],
    unicastFlood: [9, bool],
    proxyArp: [10, bool],
    proxyArpWifi: [12, bool],
    designatedPort: [15, u16],
    id: [17, u16],
    number: [18, u16],
    multicastRouter: [25, u8],
    multicastFlood: [27, bool],
    multicastToUnicast: [28, bool],
    vlanTunnel: [29, bool],
    broadcastFlood: [30, bool],
    groupFwdMask: [31, u16],
    neighSuppress: [32, bool],
    isolated: [33, bool],
    backupPort: [34, i32],
    locked: [39, bool],
  })),
  vrf: new Attributes(() => ({ table: [1, u32] })),
} as const;
