import type { ValueOf } from "./codecs.ts";
import { NetlinkError } from "./error.ts";
import { AF_UNSPEC } from "./families.ts";
import { NLM_F_CREATE, NLM_F_EXCL } from "./flags.ts";
import type { MessageOf, Requester } from "./message.ts";
import type { Netlink } from "./netlink.ts";
import type { kinds, slaveKinds } from "./tables/kinds.ts";
import { linkFormat, linkPropFormat } from "./tables/link.ts";
import type { flatLink } from "./tables/link-flat.ts";

/** linux/if.h */
export const IFF_UP = 1;
export const IFF_PROMISC = 0x100;
export const IFF_ALLMULTI = 0x200;
/** linux/rtnetlink.h: leave the counters out, most of a link's bytes. */
const RTEXT_FILTER_SKIP_STATS = 8;
const IFNAMSIZ = 16;

export type LinkKind = keyof typeof kinds;
export type KindData = { [K in LinkKind]?: ValueOf<(typeof kinds)[K]> | undefined };
/** A bridge port's options. */
export type PortOptions = ValueOf<typeof slaveKinds.bridge>;
type FlatAttributes = ValueOf<typeof flatLink>;

/** What can be set on a link when it is made, and later. */
export interface LinkSettings extends FlatAttributes {
  up?: boolean | undefined;
  promisc?: boolean | undefined;
  /** Takes all multicast frames (`allMulti` counts everybody who asked for that). */
  allMulticast?: boolean | undefined;
}

/** What can be changed on a link that exists, in one message. */
export interface LinkChange extends LinkSettings {
  /** IN6_ADDR_GEN_MODE_*: 0 EUI-64, 1 none, 2 stable privacy. */
  addrGenMode?: number | undefined;
  /** Its options as a port of the bridge that it is enslaved to already. */
  port?: PortOptions | undefined;
}

/**
 * A link to make: `{ name: "cni0", kind: "bridge", bridge: { vlanFiltering: true } }`. What the kernel (6.18)
 * does with it in this one message: a veth's two ends get name, address, MTU and namespace (netNsFd); the link
 * itself is enslaved (master) and brought up, its peer is not: it ignores `master` and refuses IFF_UP with
 * ENOTCONN. Ignored for both, hence to be set by setLink: the alias and a bridge port's options. A bridge's
 * MTU follows its ports unless it is set by setLink.
 */
export type NewLink = LinkSettings & { name: string; index?: number; alias?: never } & {
    [K in LinkKind]: { kind: K } & { [P in K]?: KindData[P] };
  }[LinkKind];

/** A link as the kernel reports it. */
export interface Link extends FlatAttributes, KindData {
  index: number;
  name: string;
  /** ARPHRD_*: 1 Ethernet, 772 loopback. */
  type: number;
  /** IFF_* bits. */
  flags: number;
  up: boolean;
  promisc: boolean;
  allMulticast: boolean;
  /** IFLA_INFO_KIND; absent for loopback and hardware. */
  kind?: string | undefined;
  /** IFLA_INFO_SLAVE_KIND: what its master is. */
  slaveKind?: string | undefined;
  /** Its options as a bridge port. */
  port?: PortOptions | undefined;
  addrGenMode?: number | undefined;
  altNames: string[];
}

/** How to find a link: by index, or by name or alternative name. */
export type LinkKey = { index: number } | { name: string };

/**
 * Makes a link. Throws NetlinkError EEXIST when its name is taken. For a link that stays in the socket's own
 * namespace (no netNsFd, netNsPid); returns it as it was made: with index, address and MTU, but not yet with
 * what came after (master, flags).
 */
export function createLink(netlink: Netlink, link: NewLink): Link {
  const { header, attributes } = creation(link);
  const made = netlink.requestEcho(
    linkFormat,
    "NEW",
    NLM_F_CREATE | NLM_F_EXCL,
    header,
    attributes,
    link.name,
  );
  if (made !== undefined) return linkOf(made);
  return linkOf(netlink.get(linkFormat, {}, byName(link.name), link.name));
}

/** Makes a link without asking for its index: in a batch, or in another namespace (netNsFd). */
export function addLink(requests: Requester, link: NewLink): void {
  const { header, attributes } = creation(link);
  requests.request(linkFormat, "NEW", NLM_F_CREATE | NLM_F_EXCL, header, attributes, link.name);
}

function creation(link: NewLink) {
  const { header, attributes } = settings(link);
  header.index = link.index ?? 0;
  attributes.linkInfo = { kind: link.kind, data: link };
  return { header, attributes };
}

function settings(link: LinkSettings) {
  const header = { index: 0, flags: 0, change: 0 };
  if (link.up !== undefined) header.change |= IFF_UP;
  if (link.up) header.flags |= IFF_UP;
  if (link.promisc !== undefined) header.change |= IFF_PROMISC;
  if (link.promisc) header.flags |= IFF_PROMISC;
  if (link.allMulticast !== undefined) header.change |= IFF_ALLMULTI;
  if (link.allMulticast) header.flags |= IFF_ALLMULTI;
  const attributes: LinkAttributes = { ...link };
  return { header, attributes };
}

type LinkAttributes = ValueOf<typeof linkFormat.attributes>;

/** Changes a link that exists; to rename it, find it by index. Throws NetlinkError ENODEV when there is none. */
export function setLink(requests: Requester, key: LinkKey, change: LinkChange): void {
  const { header, attributes } = settings(change);
  const { addrGenMode, port } = change;
  if (addrGenMode !== undefined) attributes.families = { inet6: { addrGenMode } };
  if (port !== undefined) attributes.linkInfo = { slaveKind: "bridge", slaveData: { bridge: port } };
  if ("index" in key) header.index = key.index;
  else Object.assign(attributes, byName(key.name));
  requests.request(linkFormat, "NEW", 0, header, attributes, labelOf(key));
}

/** Sets options of a link as a port of the bridge that it is enslaved to. Throws NetlinkError. */
export function setPort(requests: Requester, key: LinkKey, options: PortOptions): void {
  setLink(requests, key, { port: options });
}

/** Deletes a link. Throws NetlinkError ENODEV when there is none. */
export function deleteLink(requests: Requester, index: number): void {
  requests.request(linkFormat, "DEL", 0, { index }, {}, `index ${index}`);
}

/** Deletes a link; returns whether there was one. */
export function deleteLinkIfPresent(requests: Requester, name: string): boolean {
  try {
    requests.request(linkFormat, "DEL", 0, {}, byName(name), name);
    return true;
  } catch (error) {
    if (error instanceof NetlinkError && error.code === "ENODEV") return false;
    throw error;
  }
}

/** Finds a link; undefined when there is none. */
export function getLink(netlink: Netlink, key: LinkKey): Link | undefined {
  const header = "index" in key ? { index: key.index } : {};
  const attributes: LinkAttributes = "index" in key ? {} : byName(key.name);
  attributes.extMask = RTEXT_FILTER_SKIP_STATS;
  try {
    return linkOf(netlink.get(linkFormat, header, attributes, labelOf(key)));
  } catch (error) {
    if (error instanceof NetlinkError && error.code === "ENODEV") return undefined;
    throw error;
  }
}

/** All links, or those of one master or one kind. */
export function listLinks(netlink: Netlink, filter: { master?: number; kind?: string } = {}): Link[] {
  const { master, kind } = filter;
  const attributes: LinkAttributes = { master, extMask: RTEXT_FILTER_SKIP_STATS };
  if (kind !== undefined) attributes.linkInfo = { kind };
  return netlink
    .dump(linkFormat, { family: AF_UNSPEC }, attributes, "links")
    .map(linkOf)
    .filter((link) => (master ?? link.master) === link.master && (kind ?? link.kind) === link.kind);
}

/** Adds an alternative name (IFLA_ALT_IFNAME, at most 127 bytes). Throws NetlinkError EEXIST when it is taken. */
export function addAltName(requests: Requester, index: number, name: string): void {
  requests.request(linkPropFormat, "NEW", NLM_F_CREATE | NLM_F_EXCL, { index }, altNames(name), name);
}

export function deleteAltName(requests: Requester, index: number, name: string): void {
  requests.request(linkPropFormat, "DEL", 0, { index }, altNames(name), name);
}

const altNames = (name: string): LinkAttributes => ({ properties: { altNames: [name] } });

/** IFLA_IFNAME finds alternative names, too, but takes no more than 15 bytes. */
const byName = (name: string): LinkAttributes => (name.length < IFNAMSIZ ? { name } : { altName: name });

const labelOf = (key: LinkKey): string => ("index" in key ? `index ${key.index}` : key.name);

function linkOf({ header, attributes }: MessageOf<typeof linkFormat>): Link {
  const { linkInfo, families, properties, ...flat } = attributes;
  return {
    ...flat,
    ...linkInfo?.data,
    name: flat.name ?? "",
    index: header.index,
    type: header.type,
    flags: header.flags,
    up: (header.flags & IFF_UP) !== 0,
    promisc: (header.flags & IFF_PROMISC) !== 0,
    allMulticast: (header.flags & IFF_ALLMULTI) !== 0,
    kind: linkInfo?.kind,
    slaveKind: linkInfo?.slaveKind,
    port: linkInfo?.slaveData?.bridge,
    addrGenMode: families?.inet6?.addrGenMode,
    altNames: properties?.altNames ?? [],
  };
}
