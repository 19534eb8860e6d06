import { ip, u8, u16be, u32, u32be } from "../codecs.ts";
import { Attributes } from "../table.ts";
import { netfilterFormat } from "./netfilter.ts";

/** CTA_TUPLE_*: one direction of a connection. */
const tuple = new Attributes(() => ({
  ip: [
    1,
    new Attributes(() => ({
      source4: [1, ip],
      destination4: [2, ip],
      source6: [3, ip],
      destination6: [4, ip],
    })),
  ],
  protocol: [
    2,
    new Attributes(() => ({ number: [1, u8], sourcePort: [2, u16be], destinationPort: [3, u16be] })),
  ],
  zone: [3, u16be],
}));

/** IPCTNL_MSG_CT_{NEW,GET,DELETE}, linux/netfilter/nfnetlink_conntrack.h. */
export const conntrackFormat = netfilterFormat(
  "CT",
  1,
  0,
  new Attributes(() => ({
    original: [1, tuple],
    reply: [2, tuple],
    id: [12, u32be],
    zone: [18, u16be],
    /** CTA_FILTER: which parts of `original` a dump must match, by number (since 5.8). */
    filter: [25, new Attributes(() => ({ original: [1, u32], reply: [2, u32] }))],
  })),
);
