import { i32, ip, mac, u8, u16, u16be, u32 } from "../codecs.ts";
import { format } from "../message.ts";
import { Attributes, pad, Struct } from "../table.ts";

/** struct nda_cacheinfo: ages in 1/100 s. */
const cacheInfo = new Struct({ confirmed: u32, used: u32, updated: u32, references: u32 });

/** RTM_{NEW,DEL,GET}NEIGH, linux/neighbour.h. With family AF_BRIDGE: entries of a forwarding database. */
export const neighbourFormat = format(
  "NEIGH",
  28,
  new Struct({ family: u8, pad1: pad(1), pad2: pad(2), index: i32, state: u16, flags: u8, type: u8 }),
  new Attributes(() => ({
    destination: [1, ip],
    address: [2, mac],
    cacheInfo: [3, cacheInfo],
    probes: [4, u32],
    vlan: [5, u16],
    port: [6, u16be],
    vni: [7, u32],
    ifIndex: [8, u32],
    master: [9, u32],
    linkNetnsId: [10, i32],
    sourceVni: [11, u32],
    protocol: [12, u8],
    flagsExt: [15, u32],
  })),
);
