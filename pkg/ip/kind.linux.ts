import { hasLinkKind, type LinkKind, type Netlink } from "@tscni/netlink";
import { CniError, ErrorCode } from "@tscni/types";

/** STATUS's part: throws code 50 unless the kernel has links of a kind. */
export function requireKind(netlink: Netlink, kind: LinkKind): void {
  if (hasLinkKind(netlink, kind)) return;
  throw new CniError(ErrorCode.PluginNotAvailable, `this kernel has no links of kind ${kind}`, {
    details: `it is built without them, or their module (${kind === "vlan" ? "8021q" : kind}) can't be loaded`,
  });
}
