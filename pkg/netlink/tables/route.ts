import type { Ip } from "@tscni/addr";
import { type Codec, cString, i32, ip, u8, u16, u16be, u32 } from "../codecs.ts";
import { format } from "../message.ts";
import { Attributes, counted, Struct } from "../table.ts";

/** RTAX_*, linux/rtnetlink.h. `lock` has bit 1 << RTAX_x for each metric that may not be changed. */
const metrics = new Attributes(() => ({
  lock: [1, u32],
  mtu: [2, u32],
  window: [3, u32],
  rtt: [4, u32],
  ssthresh: [6, u32],
  cwnd: [7, u32],
  advmss: [8, u32],
  reordering: [9, u32],
  hopLimit: [10, u32],
  initCwnd: [11, u32],
  rtoMin: [13, u32],
  initRwnd: [14, u32],
  quickAck: [15, u32],
  congestionControl: [16, cString],
}));

/** struct rtvia: a gateway of another family than the route's. */
const via: Codec<Ip> = {
  put(wire, value, siblings) {
    u16.put(wire, value.family === 4 ? 2 : 10, siblings);
    ip.put(wire, value, siblings);
  },
  get: (wire, from, to, siblings) => ip.get(wire, from + 2, to, siblings),
};

/** struct rtnexthop behind its length. `hops` is the weight less one. */
const rtnexthop = new Struct({ flags: u8, hops: u8, index: i32 });

const cacheInfo = new Struct({
  references: u32,
  lastUse: u32,
  expires: i32,
  error: u32,
  used: u32,
  id: u32,
  stamp: u32,
  stampAge: u32,
});

/** RTM_{NEW,DEL,GET}ROUTE, linux/rtnetlink.h. The header's table has 8 bits, the attribute 32. */
export const routeFormat = format(
  "ROUTE",
  24,
  new Struct({
    family: u8,
    destinationPrefix: u8,
    sourcePrefix: u8,
    tos: u8,
    table: u8,
    protocol: u8,
    scope: u8,
    type: u8,
    flags: u32,
  }),
  new Attributes(() => ({
    destination: [1, ip],
    source: [2, ip],
    inIndex: [3, u32],
    outIndex: [4, u32],
    gateway: [5, ip],
    priority: [6, u32],
    preferredSource: [7, ip],
    metrics: [8, metrics],
    nextHops: [9, counted(rtnexthop, new Attributes(() => ({ gateway: [5, ip], via: [18, via] })))],
    flow: [11, u32],
    cacheInfo: [12, cacheInfo],
    table: [15, u32],
    mark: [16, u32],
    via: [18, via],
    preference: [20, u8],
    encapType: [21, u16],
    expires: [23, u32],
    uid: [25, u32],
    ttlPropagate: [26, u8],
    ipProtocol: [27, u8],
    sourcePort: [28, u16be],
    destinationPort: [29, u16be],
    nextHopId: [30, u32],
  })),
);
