import type { Ip } from "@tscni/addr";

/** linux/socket.h */
export const AF_UNSPEC = 0;
export const AF_INET = 2;
/** NFPROTO_INET of linux/netfilter.h: nftables' tables for both IP families. */
export const NFPROTO_INET = 1;
export const AF_BRIDGE = 7;
export const AF_INET6 = 10;

export type Family = Ip["family"];

/** The kernel's number for an IP family; AF_UNSPEC for none. */
export function numberOf(family: Family | undefined): number {
  return family === undefined ? AF_UNSPEC : family === 4 ? AF_INET : AF_INET6;
}
