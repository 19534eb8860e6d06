import { type Attachment, aliasHasNetwork, aliasOf } from "@tscni/ip";
import {
  createLink,
  deleteLink,
  deleteLinkIfPresent,
  getLink,
  type Link,
  listLinks,
  listQdiscs,
  listRedirects,
  type Netlink,
  NetlinkError,
  setLink,
  setTokenBucket,
  type TokenBucket,
} from "@tscni/netlink";
import { sha512 } from "@tscni/sys";

/*
 * What a container sends comes in by the host's end of its veth, where nothing can wait; it is redirected to an ifb,
 * which has a queue. An attachment's ifb has the name that the reference derives from network and container, so that
 * either plugin can take over; when another interface of the container has that one already, a name that the
 * interface goes into, too. The label (alias) tells whose it is.
 */

const prefix = "bwp";

const referenceName = ({ network, containerId }: Attachment): string =>
  prefix + sha512(network + containerId).slice(0, 12);

const ownName = ({ network, containerId, ifName }: Attachment): string =>
  prefix + sha512(`${network}/${containerId}/${ifName}`).slice(0, 12);

/**
 * Makes an attachment's ifb with its bucket, and brings it up only then: a queue is put at once on a link that is down,
 * while one that is up is waited for. `port` is the host's end of the veth.
 */
export function createIfb(host: Netlink, attachment: Attachment, port: Link, bucket: TokenBucket): Link {
  const ifb = createNamed(host, attachment, port);
  try {
    setTokenBucket(host, ifb.index, bucket);
    setLink(host, { index: ifb.index }, { alias: aliasOf(attachment), up: true });
  } catch (error) {
    deleteLink(host, ifb.index);
    throw error;
  }
  return ifb;
}

function createNamed(host: Netlink, attachment: Attachment, port: Link): Link {
  // The reference's queue length, which goes well with a bucket: waiting is the bucket's business.
  const create = (name: string) =>
    createLink(host, { kind: "ifb", name, txQueueLen: 0, ...(port.mtu ? { mtu: port.mtu } : {}) });
  deleteLinkIfPresent(host, ownName(attachment)); // left by an ADD without a DEL, or about to be made anew
  try {
    return create(referenceName(attachment));
  } catch (error) {
    if (!(error instanceof NetlinkError) || error.code !== "EEXIST") throw error;
  }
  const found = getLink(host, { name: referenceName(attachment) });
  if (found && isAnothers(host, found, attachment, port)) return create(ownName(attachment));
  if (found) deleteLink(host, found.index);
  return create(referenceName(attachment));
}

/** Whether an ifb of the reference's name serves another interface: by its label, else by what is redirected to it. */
function isAnothers(host: Netlink, ifb: Link, attachment: Attachment, port: Link): boolean {
  if (ifb.alias) return ifb.alias !== aliasOf(attachment);
  return redirects(host).some(([source, target]) => target === ifb.index && source !== port.index);
}

/** Every link whose incoming packets are redirected, with where to. */
const redirects = (host: Netlink): [source: number, target: number][] =>
  listQdiscs(host)
    .filter(({ kind }) => kind === "ingress")
    .flatMap(({ index }) => listRedirects(host, index).map((target) => [index, target] as [number, number]));

/** An attachment's ifb, ours or the reference's; undefined when there is none. */
export function findIfb(host: Netlink, attachment: Attachment): Link | undefined {
  const own = getLink(host, { name: ownName(attachment) });
  if (own) return own;
  const found = getLink(host, { name: referenceName(attachment) });
  return !found?.alias || found.alias === aliasOf(attachment) ? found : undefined;
}

/** Needs nothing but the names. */
export function deleteIfbIfPresent(host: Netlink, attachment: Attachment): void {
  const ifb = findIfb(host, attachment);
  if (ifb?.kind === "ifb") deleteLinkIfPresent(host, ifb.name);
  if (ifb?.name !== ownName(attachment)) return;
  // Of the reference's name only with our label: another interface may have it.
  const other = getLink(host, { name: referenceName(attachment) });
  if (other?.alias === aliasOf(attachment)) deleteLinkIfPresent(host, other.name);
}

/**
 * Deletes the ifbs of a network's attachments that are not in the list, and those without a label that nothing is
 * redirected to: the reference's whose veth is gone, and what was killed while it made one. Such are looked at
 * twice, since they may just be in the making. Returns what it deleted.
 */
export function gcIfbs(
  host: Netlink,
  network: string,
  valid: readonly Attachment[],
  pause: () => void,
): Link[] {
  const kept = new Set(valid.map(aliasOf));
  const ours = listLinks(host, { kind: "ifb" }).filter(({ name }) => name.startsWith(prefix));
  const stale = ours.filter(({ alias }) => alias && aliasHasNetwork(alias, network) && !kept.has(alias));
  const named = new Set(valid.map(referenceName));
  const unlabelled = ours.filter(({ alias, name }) => !alias && !named.has(name));
  const orphans = unused(host, unlabelled);
  if (orphans.length > 0) {
    pause();
    const still = orphans.map(({ index }) => getLink(host, { index })).filter((link) => link !== undefined);
    stale.push(...unused(host, still).filter(({ alias }) => !alias));
  }
  return stale.filter(({ name }) => deleteLinkIfPresent(host, name));
}

/** Those of the links that nothing is redirected to. */
function unused(host: Netlink, links: readonly Link[]): Link[] {
  if (links.length === 0) return [];
  const targets = new Set(redirects(host).map(([, target]) => target));
  return links.filter(({ index }) => !targets.has(index));
}
