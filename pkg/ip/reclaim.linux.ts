import { deleteLinkIfPresent, getLink, type Link, listLinks, type Netlink } from "@tscni/netlink";
import {
  type Attachment,
  aliasHasNetwork,
  hostInterfaceName,
  isHostInterfaceName,
} from "./attachment.linux.ts";
import { deleteContainerLink } from "./container.linux.ts";

/**
 * Deletes an attachment's link: by the host end's derived name, which needs no namespace and takes the other end
 * with it; where there is none of that name, by the container's interface, which the Go plugin may have made.
 * Nothing there is fine.
 */
export function deleteAttachmentLink(host: Netlink, attachment: Attachment, netns: string): void {
  if (deleteLinkIfPresent(host, hostInterfaceName(attachment))) return;
  deleteContainerLink({ netns, ifName: attachment.ifName });
}

/** What GC is to keep, and how it says what it removed. */
export interface Reclaim {
  readonly network: string;
  readonly validAttachments: readonly { containerID: string; ifname: string }[] | undefined;
  warn(message: string): void;
}

/**
 * Deletes the host ends of a network's attachments that are not valid any more. `killed` tells which links
 * without a label may be what a killed ADD left in the moment between making a link and labelling it; they
 * are looked at twice, so that an ADD in progress (of another network) gets to label its link.
 */
export function gcAttachmentLinks(host: Netlink, gc: Reclaim, killed: (link: Link) => boolean): void {
  const { network, validAttachments = [] } = gc;
  const valid = new Set(
    validAttachments.map(({ containerID, ifname }) =>
      hostInterfaceName({ network, containerId: containerID, ifName: ifname }),
    ),
  );
  const links = listLinks(host, { kind: "veth" }).filter(
    ({ name }) => isHostInterfaceName(name) && !valid.has(name),
  );
  const stale = links.filter(({ alias }) => alias && aliasHasNetwork(alias, network));
  const unlabelled = links.filter((link) => !link.alias && killed(link));
  if (unlabelled.length > 0) Bun.sleepSync(labellingMs);
  for (const link of unlabelled) if (!getLink(host, { index: link.index })?.alias) stale.push(link);
  for (const { name, alias } of stale) {
    if (deleteLinkIfPresent(host, name)) gc.warn(`gc: removed link ${name}${alias ? ` (${alias})` : ""}`);
  }
}

/** An ADD labels its link within a fraction of a millisecond; this allows for a very busy machine. */
const labellingMs = 500;
