import { type Ip, ipText } from "@tscni/addr";
import { AF_INET, AF_INET6, type Family, numberOf } from "./families.ts";
import { NLM_F_CREATE, NLM_F_REPLACE } from "./flags.ts";
import type { MessageOf, Requester } from "./message.ts";
import type { Netlink } from "./netlink.ts";
import { neighbourFormat } from "./tables/neighbour.ts";

/** linux/neighbour.h */
export const NUD_REACHABLE = 0x02;
export const NUD_STALE = 0x04;
export const NUD_FAILED = 0x20;
export const NUD_NOARP = 0x40;
export const NUD_PERMANENT = 0x80;
export const NTF_PROXY = 0x08;

/** An entry of the ARP or NDP table. */
export interface Neighbour {
  /** The link's index. */
  index: number;
  destination: Ip;
  /** Link-layer address; absent while it is not resolved. */
  address?: string | undefined;
  /** NUD_* bits: permanent by default. */
  state?: number | undefined;
  /** NTF_* bits. */
  flags?: number | undefined;
}

/** Makes or replaces an entry. Throws NetlinkError. */
export function setNeighbour(requests: Requester, neighbour: Neighbour): void {
  const { destination, address, state = NUD_PERMANENT } = neighbour;
  requests.request(
    neighbourFormat,
    "NEW",
    NLM_F_CREATE | NLM_F_REPLACE,
    { ...headerOf(neighbour), state },
    { destination, address },
    labelOf(neighbour),
  );
}

/** Deletes an entry. Throws NetlinkError ENOENT when there is none. */
export function deleteNeighbour(requests: Requester, neighbour: Neighbour): void {
  const { destination } = neighbour;
  requests.request(neighbourFormat, "DEL", 0, headerOf(neighbour), { destination }, labelOf(neighbour));
}

const headerOf = ({ index, destination, flags }: Neighbour) => ({
  family: numberOf(destination.family),
  index,
  flags: flags ?? 0,
});

const labelOf = ({ destination, index }: Neighbour): string => `${ipText(destination)} on index ${index}`;

/** All entries, or those of one link or family; without proxy entries. */
export function listNeighbours(
  netlink: Netlink,
  filter: { index?: number; family?: Family } = {},
): Neighbour[] {
  const { index, family } = filter;
  return netlink
    .dump(neighbourFormat, { family: numberOf(family) }, { ifIndex: index }, "neighbours")
    .filter(({ header }) => header.family === AF_INET || header.family === AF_INET6)
    .flatMap(neighbourOf)
    .filter((entry) => (index ?? entry.index) === entry.index);
}

function neighbourOf({ header, attributes }: MessageOf<typeof neighbourFormat>): Neighbour[] {
  const { destination, address } = attributes;
  if (destination === undefined) return [];
  return [{ index: header.index, destination, address, state: header.state, flags: header.flags }];
}

/**
 * Deletes all entries of a link, in one batch. An entry that went meanwhile is no error; another failure is
 * thrown.
 */
export function flushNeighbours(netlink: Netlink, index: number): void {
  const entries = listNeighbours(netlink, { index }).filter((entry) => (entry.state! & NUD_NOARP) === 0);
  const errors = netlink.batch((requests) => {
    for (const entry of entries) deleteNeighbour(requests, entry);
  });
  for (const error of errors) if (error !== undefined && error.code !== "ENOENT") throw error;
}
