import { cString, i32, ip, u8, u32 } from "../codecs.ts";
import { format } from "../message.ts";
import { Attributes, Struct } from "../table.ts";

/** struct ifa_cacheinfo, linux/if_addr.h: lifetimes in seconds (0xffffffff: forever), stamps in 1/100 s. */
const cacheInfo = new Struct({ preferred: u32, valid: u32, created: u32, updated: u32 });

/** RTM_{NEW,DEL,GET}ADDR, linux/if_addr.h. The header's flags have 8 bits, the attribute all of IFA_F_*. */
export const addressFormat = format(
  "ADDR",
  20,
  new Struct({ family: u8, prefix: u8, flags: u8, scope: u8, index: u32 }),
  new Attributes(() => ({
    /** The other side's address on a point-to-point link, else the same as `local`. IPv6 often has only this. */
    address: [1, ip],
    local: [2, ip],
    label: [3, cString],
    broadcast: [4, ip],
    anycast: [5, ip],
    cacheInfo: [6, cacheInfo],
    multicast: [7, ip],
    flags: [8, u32],
    /** Metric of the prefix route. */
    priority: [9, u32],
    targetNetnsId: [10, i32],
    protocol: [11, u8],
  })),
);
