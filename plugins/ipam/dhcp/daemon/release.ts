import { getLink, openRoute } from "@tscni/netlink";
import { AF_PACKET, SOCK_RAW, send, socket } from "@tscni/sys";
import { packetAddress, SOCK_NONBLOCK } from "@tscni/sys/net";
import { messageOf as textOf } from "@tscni/types";
import { broadcastMac } from "../wire/frame.ts";
import { ipv4Bytes, ipv4Text } from "../wire/ipv4.ts";
import { type Message, MessageType } from "../wire/message.ts";
import { Option } from "../wire/options.ts";
import { openPlaceIfPresent, type Place } from "./container.ts";
import { type Identity, messageOf } from "./identity.ts";
import type { Lease } from "./lease.ts";
import type { Loop } from "./loop.ts";
import { frameOf, macBytes, sendByRoutes } from "./port.ts";
import { randomUint32 } from "./runtime.ts";
import type { Trace } from "./trace.ts";

/**
 * Tells the server that the address is free. Nobody answers, and a server that does not hear it waits for the lease
 * to expire, so whatever goes wrong is only logged. Where the container's interface is gone, the host says it: through
 * the bridge or master that the interface was on, and by the host's own routes.
 */
export function release(loop: Loop, place: Place, identity: Identity, lease: Lease, trace: Trace): void {
  const message = messageOf(identity, {
    type: MessageType.Release,
    xid: randomUint32(),
    ciaddr: lease.address,
    options: [[Option.ServerId, ipv4Bytes(lease.server)]],
  });
  const attempt = (where: string, work: () => boolean): boolean => {
    try {
      const done = work();
      if (done) trace.sent("RELEASE", `of ${ipv4Text(lease.address)} ${where}`);
      return done;
    } catch (error) {
      trace.log(`could not send RELEASE ${where}: ${textOf(error)}`);
      return false;
    }
  };
  if (attempt("from the container", () => fromContainer(loop, message, place, lease))) return;
  attempt(`through ${place.anchor?.name}`, () => throughAnchor(loop, message, place, lease));
  attempt("by the host's routes", () => {
    sendByRoutes(message, lease.server);
    return true;
  });
}

function fromContainer(loop: Loop, message: Message, place: Place, lease: Lease): boolean {
  using namespace = openPlaceIfPresent(place);
  if (namespace === undefined) return false;
  sendFrame(loop, namespace.enter(openSocket), place.ifIndex, message, place, lease);
  return true;
}

/** In our own namespace, where the interface may be another's by now: its name is looked at, too. */
function throughAnchor(loop: Loop, message: Message, place: Place, lease: Lease): boolean {
  if (place.anchor === undefined) return false;
  if (!isAnchor(place.anchor)) return false;
  sendFrame(loop, openSocket(), place.anchor.index, message, place, lease);
  return true;
}

function isAnchor({ name, index }: NonNullable<Place["anchor"]>): boolean {
  using host = openRoute();
  return getLink(host, { index })?.name === name;
}

const openSocket = (): number => socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);

/**
 * To where the server's answer came from, which is the router before a server that is elsewhere, and to all: on a bridge
 * that has changed its address since it started, Kea answers from the old one. Twice does no harm, and there is no time
 * to ask by ARP: the interface is about to be deleted.
 */
function sendFrame(
  loop: Loop,
  fd: number,
  ifIndex: number,
  message: Message,
  place: Place,
  lease: Lease,
): void {
  try {
    const route = { source: lease.address, target: lease.server };
    const targets =
      lease.serverMac === undefined ? [broadcastMac] : [macBytes(lease.serverMac), broadcastMac];
    for (const targetMac of targets)
      send(fd, frameOf(message, macBytes(place.mac), { ...route, targetMac }), packetAddress(ifIndex, 0));
  } finally {
    loop.retire(fd);
  }
}
