import { NetlinkError } from "./error.ts";
import { addLink, deleteLinkIfPresent, type LinkKind, type NewLink } from "./links.ts";
import type { Netlink } from "./netlink.ts";

const name = "tscni-probe";
/** No kind takes a multicast address, and ipvlan refuses a link without a master. */
const refused = { name, address: "01:00:00:00:00:00" };

/**
 * Whether the kernel has links of a kind, found out by asking for one that it refuses for another reason. It loads
 * the kind's module for that, as it would for a link.
 */
export function hasLinkKind(netlink: Netlink, kind: LinkKind): boolean {
  try {
    addLink(netlink, { ...refused, kind } as NewLink);
  } catch (error) {
    return !(error instanceof NetlinkError && error.code === "EOPNOTSUPP");
  }
  deleteLinkIfPresent(netlink, name);
  return true;
}
