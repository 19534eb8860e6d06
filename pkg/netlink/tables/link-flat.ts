import { bool, cString, i32, mac, u8, u16, u32 } from "../codecs.ts";
import { Attributes, each, pad, Struct } from "../table.ts";

/** struct ifinfomsg, linux/rtnetlink.h. `flags` and `change` are IFF_* bits, `type` is ARPHRD_*. */
export const ifinfomsg = new Struct({
  family: u8,
  pad: pad(1),
  type: u16,
  index: i32,
  flags: u32,
  change: u32,
});

/** The attributes of a link without those that nest by kind or family: what a veth's peer takes, too. */
export const flatLink = new Attributes(() => ({
  /** IFLA_ADDRESS */
  address: [1, mac],
  broadcast: [2, mac],
  /** IFLA_IFNAME */
  name: [3, cString],
  /** Bytes. */
  mtu: [4, u32],
  /** IFLA_LINK: index of the link beneath (vlan, macvlan), or a veth's peer; in namespace `linkNetnsId`. */
  link: [5, u32],
  qdisc: [6, cString],
  /** Index of the bridge or VRF; 0 for none. */
  master: [10, u32],
  txQueueLen: [13, u32],
  /** IF_OPER_*: 2 down, 3 lower layer down, 6 up, 0 unknown. */
  operState: [16, u8],
  linkMode: [17, u8],
  netNsPid: [19, u32],
  /** IFLA_IFALIAS, at most 255 bytes. Not honoured at creation. */
  alias: [20, cString],
  group: [27, u32],
  /** A descriptor of the namespace to put the link into. */
  netNsFd: [28, u32],
  /** RTEXT_FILTER_*, in requests. */
  extMask: [29, u32],
  promiscuity: [30, u32],
  numTxQueues: [31, u32],
  numRxQueues: [32, u32],
  carrier: [33, bool],
  carrierChanges: [35, u32],
  linkNetnsId: [37, i32],
  protoDown: [39, bool],
  gsoMaxSegs: [40, u32],
  gsoMaxSize: [41, u32],
  newNetnsId: [45, i32],
  targetNetnsId: [46, i32],
  carrierUpCount: [47, u32],
  carrierDownCount: [48, u32],
  /** In the notice of a link that left: its index in the other namespace. */
  newIfIndex: [49, i32],
  minMtu: [50, u32],
  maxMtu: [51, u32],
  /** IFLA_PROP_LIST of IFLA_ALT_IFNAME */
  properties: [52, new Attributes(() => ({ altNames: [53, each(cString)] }))],
  /** IFLA_ALT_IFNAME, in requests: find the link by an alternative name, too. */
  altName: [53, cString],
  permAddress: [54, mac],
  parentDevName: [56, cString],
  parentDevBusName: [57, cString],
  allMulti: [61, u32],
}));
