import type { Requester } from "./message.ts";
import type { Netlink } from "./netlink.ts";
import { namespaceFormat } from "./tables/namespace.ts";

/**
 * The id by which the socket's namespace knows the one that `fd` names: what a link's `linkNetnsId` refers to.
 * undefined when it has none.
 */
export function namespaceId(netlink: Netlink, fd: number): number | undefined {
  const { attributes } = netlink.get(namespaceFormat, {}, { fd }, `namespace fd ${fd}`);
  return attributes.id === undefined || attributes.id < 0 ? undefined : attributes.id;
}

/** Gives the namespace that `fd` names an id, any when it is -1. Throws NetlinkError EEXIST when it has one. */
export function assignNamespaceId(requests: Requester, fd: number, id = -1): void {
  requests.request(namespaceFormat, "NEW", 0, {}, { fd, id }, `namespace fd ${fd}`);
}
