import { type Ip, ipEquals, parseIp } from "@tscni/addr";
import { isLocal } from "@tscni/ip";
import {
  type Connection,
  deleteConnections,
  listConnections,
  type Netlink,
  openNetfilter,
  openRoute,
} from "@tscni/netlink";
import { messageOf } from "@tscni/types";
import { ipOf, type Mapping, type Target } from "./mapping.ts";

const IPPROTO_UDP = 17;

/*
 * A connection keeps the way that its first packet took. UDP clients go on from the same port, so that a connection
 * older than a container never gets to it, and one of a container that is gone leads to nobody for ever. TCP and SCTP
 * clients notice by themselves.
 */

/** Makes the kernel forget UDP connections to ports of ours that were led elsewhere. What fails is told. */
export function forgetOldConnections(targets: readonly Target[], warn: (message: string) => void): void {
  forEachPort(targets, warn, (connection, mapping, target) => {
    if (leadsTo(connection, mapping, target)) return false;
    const { destination } = connection.original;
    return mapping.hostIp === undefined ? isHosts(destination) : isAddress(destination, mapping.hostIp);
  });
}

/** Makes the kernel forget UDP connections that lead to a container which is going. What fails is told. */
export function forgetOwnConnections(targets: readonly Target[], warn: (message: string) => void): void {
  forEachPort(targets, warn, leadsTo);
}

const leadsTo = ({ reply }: Connection, { containerPort }: Mapping, target: Target): boolean =>
  ipEquals(reply.source, ipOf(target)) && reply.sourcePort === containerPort;

const isAddress = (ip: Ip, text: string): boolean => {
  const other = parseIp(text);
  return other !== undefined && ipEquals(ip, other);
};

/** Whether an address is the host's own. */
function isHosts(ip: Ip): boolean {
  using host = openRoute();
  return isLocal(host, ip);
}

function forEachPort(
  targets: readonly Target[],
  warn: (message: string) => void,
  isStale: (connection: Connection, mapping: Mapping, target: Target) => boolean,
): void {
  const ports = targets.flatMap((target) =>
    target.mappings.filter(({ protocol }) => protocol === "udp").map((mapping) => ({ target, mapping })),
  );
  if (ports.length === 0) return;
  try {
    using netlink = openNetfilter();
    for (const { target, mapping } of ports) forgetPort(netlink, mapping, target, isStale);
  } catch (error) {
    warn(`UDP connections to host ports are not looked after: ${messageOf(error)}`);
  }
}

function forgetPort(
  netlink: Netlink,
  mapping: Mapping,
  target: Target,
  isStale: (connection: Connection, mapping: Mapping, target: Target) => boolean,
): void {
  const found = listConnections(netlink, target.family, IPPROTO_UDP, mapping.hostPort);
  deleteConnections(
    netlink,
    found.filter((connection) => isStale(connection, mapping, target)),
  );
}
