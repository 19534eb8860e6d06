import {
  addNftElements,
  getNftElement,
  type Netlink,
  NetlinkError,
  type NftElementFound,
} from "@tscni/netlink";
import { type NftText, startNft } from "@tscni/nftables";
import { heldLock } from "./lock.linux.ts";
import { bytesOf, type Element } from "./nft-elements.ts";
import { commentOf } from "./nft-layout.ts";
import { allPublished, type Published } from "./owners.linux.ts";

/** One transaction; none where there is nothing to do. */
export function run(statements: readonly NftText[]): void {
  if (statements.length > 0) startNft(statements, heldLock()).wait();
}

/** An element as the kernel has it; undefined when it has none with this key. */
export const find = (netlink: Netlink, table: string, { map, key }: Pick<Element, "map" | "key">) =>
  getNftElement(netlink, "inet", table, map, bytesOf(key));

/** As many as fit into a message many times over. */
const fewElements = 64;

/**
 * Creates elements without nft, which takes longer to start than the kernel to do it. Returns false when that did not
 * work, for whatever reason: nothing is done then, and nft tells why.
 */
export function addElements(
  netlink: Netlink,
  table: string,
  elements: readonly Element[],
  comment: string,
): boolean {
  if (elements.length > fewElements) return false;
  const made = elements.map(({ map, key, data }) => ({
    set: map,
    key: bytesOf(key),
    comment,
    ...(map.startsWith("masq") ? { goTo: data } : { value: bytesOf(data) }),
  }));
  try {
    addNftElements(netlink, "inet", table, made, { created: true });
    return true;
  } catch (error) {
    if (error instanceof NetlinkError) return false;
    throw error;
  }
}

/** Whether an element leads where it should. */
export function leadsTo(found: NftElementFound, { map, data }: Element): boolean {
  if (map.startsWith("masq")) return found.chain === data;
  const [a, b] = [found.value, bytesOf(data)];
  return a !== undefined && a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/** The attachment that a comment names, if it has a record. */
export const ownerNamed = (comment = ""): Published | undefined =>
  allPublished().find((record) => commentOf(record) === comment);
