import { u8, u16be } from "../codecs.ts";
import type { Format } from "../message.ts";
import { Attributes, type Entries, Struct } from "../table.ts";

/** struct nfgenmsg, linux/netfilter/nfnetlink.h. Family AF_INET, AF_INET6 or NFPROTO_INET. */
const nfgenmsg = new Struct({ family: u8, version: u8, resourceId: u16be });

/** Messages of one of netfilter's subsystems (NFNL_SUBSYS_*): NEW is `first`, then GET and DEL. */
export const netfilterFormat = <const E extends Entries>(
  noun: string,
  subsystem: number,
  first: number,
  attributes: Attributes<E>,
): Format<(typeof nfgenmsg)["fields"], E> => ({
  noun,
  first: (subsystem << 8) | first,
  netfilter: true,
  header: nfgenmsg,
  attributes,
});

/** NFNL_MSG_BATCH_{BEGIN,END}, here NEW and GET: what is between them is done whole or not at all. */
export const batchFormat = netfilterFormat("NFNL_BATCH", 0, 0x10, new Attributes(() => ({})));
