import { type Cidr, cidrText, type Ip } from "@tscni/addr";
import { type Family, numberOf } from "./families.ts";
import { NLM_F_CREATE, NLM_F_EXCL } from "./flags.ts";
import type { MessageOf, Requester } from "./message.ts";
import type { Netlink } from "./netlink.ts";
import { addressFormat } from "./tables/address.ts";

/** linux/if_addr.h */
export const IFA_F_NODAD = 0x02;
export const IFA_F_DADFAILED = 0x08;
export const IFA_F_TENTATIVE = 0x40;
export const IFA_F_PERMANENT = 0x80;
export const IFA_F_NOPREFIXROUTE = 0x200;

/** An address of a link. */
export interface Address {
  /** The link's index. */
  index: number;
  cidr: Cidr;
  /** The other side's address on a point-to-point link. */
  peer?: Ip | undefined;
  /** IFA_F_* bits. */
  flags?: number | undefined;
  /** RT_SCOPE_*: 0 global, 253 link, 254 host. */
  scope?: number | undefined;
  label?: string | undefined;
  broadcast?: Ip | undefined;
  /** Seconds that it is preferred and valid; absent: forever. */
  preferred?: number | undefined;
  valid?: number | undefined;
  /** Metric of the prefix route. */
  priority?: number | undefined;
}

/** Adds an address. Throws NetlinkError EEXIST when the link has it already. */
export function addAddress(requests: Requester, address: Address): void {
  const { cidr, label, broadcast, priority, flags, preferred, valid } = address;
  const cacheInfo =
    preferred === undefined && valid === undefined
      ? undefined
      : { preferred: preferred ?? FOREVER, valid: valid ?? FOREVER, created: 0, updated: 0 };
  requests.request(
    addressFormat,
    "NEW",
    NLM_F_CREATE | NLM_F_EXCL,
    { ...headerOf(address), scope: address.scope ?? 0 },
    { ...identityOf(address), label, broadcast, priority, flags, cacheInfo },
    `${cidrText(cidr)} on index ${address.index}`,
  );
}

const FOREVER = 0xffffffff;

/** Takes an address away. Throws NetlinkError EADDRNOTAVAIL when the link does not have it. */
export function deleteAddress(requests: Requester, address: Pick<Address, "index" | "cidr" | "peer">): void {
  const subject = `${cidrText(address.cidr)} on index ${address.index}`;
  requests.request(addressFormat, "DEL", 0, headerOf(address), identityOf(address), subject);
}

const headerOf = ({ index, cidr }: Pick<Address, "index" | "cidr">) => ({
  family: numberOf(cidr.ip.family),
  prefix: cidr.prefix,
  index,
});

const identityOf = ({ cidr, peer }: Pick<Address, "cidr" | "peer">) => ({
  local: cidr.ip,
  address: peer ?? cidr.ip,
});

/** All addresses, or those of one link or family. */
export function listAddresses(netlink: Netlink, filter: { index?: number; family?: Family } = {}): Address[] {
  const { index, family } = filter;
  return netlink
    .dump(addressFormat, { family: numberOf(family), index: index ?? 0 }, {}, "addresses")
    .map(addressOf)
    .filter(
      (address) =>
        (index ?? address.index) === address.index &&
        (family ?? address.cidr.ip.family) === address.cidr.ip.family,
    );
}

function addressOf({ header, attributes }: MessageOf<typeof addressFormat>): Address {
  const { address, cacheInfo } = attributes;
  const local = attributes.local ?? address ?? attributes.anycast ?? attributes.multicast;
  if (local === undefined) throw new RangeError("the kernel reported an address without an address");
  return {
    index: header.index,
    cidr: { ip: local, prefix: header.prefix },
    peer: address !== undefined && address.value !== local.value ? address : undefined,
    flags: attributes.flags ?? header.flags,
    scope: header.scope,
    label: attributes.label,
    broadcast: attributes.broadcast,
    preferred: lifetime(cacheInfo?.preferred),
    valid: lifetime(cacheInfo?.valid),
    priority: attributes.priority,
  };
}

const lifetime = (seconds: number | undefined): number | undefined =>
  seconds === FOREVER ? undefined : seconds;
