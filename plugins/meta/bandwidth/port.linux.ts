import { hostInterfaceOf, mismatch } from "@tscni/ip";
import {
  addIngress,
  deleteRedirects,
  getLink,
  type Link,
  listQdiscs,
  type Netlink,
  NetlinkError,
  openRoute,
  type TokenBucket,
} from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import type { Call } from "@tscni/skel";
import type { Result } from "@tscni/types";
import type { BandwidthConf } from "./conf.ts";
import { burstOf } from "./limits.ts";

type BandwidthCall = Call<BandwidthConf>;

/** The host's end of the container's veth, which the previous result must have. Throws CniError. */
export function hostEndOf(host: Netlink, { netns, ifName }: BandwidthCall, result: Result): Link {
  using sandbox = openNamespace(netns);
  using container = sandbox.enter(openRoute);
  const end = getLink(container, { name: ifName });
  if (end?.kind !== "veth" || !end.link)
    throw mismatch(
      `container interface ${ifName} has no veth peer: it is ${end ? "another kind" : "missing"}`,
    );
  const peer = getLink(host, { index: end.link });
  if (peer?.kind !== "veth" || peer.link !== end.index)
    throw mismatch(`veth peer with index ${end.link} is not in host ns`);
  hostInterfaceOf(result, peer.name);
  return peer;
}

/** Returns whether the link had none. What an ADD without a DEL redirected is redirected no more. */
export function ensureIngress(host: Netlink, index: number): boolean {
  try {
    addIngress(host, index);
    return true;
  } catch (error) {
    if (!(error instanceof NetlinkError) || error.code !== "EEXIST") throw error;
    deleteRedirects(host, index);
    return false;
  }
}

/** A bucket too small for a packet lets only smaller ones through, without a word from the kernel. */
export function warnOfSmall(call: BandwidthCall, key: string, bucket: TokenBucket, { mtu = 0 }: Link): void {
  const frame = mtu + ethernetHeader;
  if (burstOf(bucket) < frame)
    call.warn(
      `${key}: ${burstOf(bucket)} bytes are less than a packet of ${frame}: such will not get through`,
    );
}

const ethernetHeader = 14;

export function verifyBucket(host: Netlink, link: Link, { rate, limit, buffer }: TokenBucket): void {
  const found = listQdiscs(host, link.index).find(({ isRoot }) => isRoot)?.tokenBucket;
  if (found === undefined) throw mismatch(`${link.name} has no token bucket`);
  if (found.rate !== rate) throw mismatch(`the rate of ${link.name} is ${found.rate} B/s, not ${rate}`);
  if (found.limit !== limit)
    throw mismatch(`the limit of ${link.name} is ${found.limit} bytes, not ${limit}`);
  if (found.buffer !== buffer)
    throw mismatch(
      `the burst of ${link.name} is ${burstOf(found)} bytes, not ${burstOf({ rate, limit, buffer })}`,
    );
}
