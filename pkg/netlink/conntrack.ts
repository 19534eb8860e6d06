import type { Ip } from "@tscni/addr";
import { type Family, numberOf } from "./families.ts";
import type { MessageOf } from "./message.ts";
import type { Netlink } from "./netlink.ts";
import { conntrackFormat } from "./tables/conntrack.ts";

/** One direction of a connection: where its packets come from and go to. */
export interface Flow {
  source: Ip;
  destination: Ip;
  sourcePort: number;
  destinationPort: number;
}

/** A connection that the kernel tracks. */
export interface Connection {
  /** As the first packet was sent. */
  original: Flow;
  /** As answers are expected: what DNAT chose is the source, what SNAT chose the destination. */
  reply: Flow;
  /** What the kernel knows it by. */
  message: MessageOf<typeof conntrackFormat>;
}

// CTA_FILTER_FLAG(x), net/netfilter/nf_conntrack_netlink.c
const PROTOCOL_NUMBER = 1 << 3;
const DESTINATION_PORT = 1 << 5;

/** The connections of a family and protocol (IPPROTO_*) whose first packet went to a port, whatever address. */
export function listConnections(
  netlink: Netlink,
  family: Family,
  protocol: number,
  destinationPort: number,
): Connection[] {
  const messages = netlink.dump(
    conntrackFormat,
    { family: numberOf(family) },
    {
      original: { protocol: { number: protocol, destinationPort } },
      filter: { original: PROTOCOL_NUMBER | DESTINATION_PORT },
    },
    "connections",
  );
  const found: Connection[] = [];
  for (const message of messages) {
    const { original, reply } = message.attributes;
    // Kernels before 5.8 pass over the filter.
    if (original?.protocol?.number !== protocol || original.protocol.destinationPort !== destinationPort)
      continue;
    const [there, back] = [flowOf(original), flowOf(reply)];
    if (there !== undefined && back !== undefined) found.push({ original: there, reply: back, message });
  }
  return found;
}

type Tuple = Connection["message"]["attributes"]["original"];

function flowOf(tuple: Tuple): Flow | undefined {
  const source = tuple?.ip?.source4 ?? tuple?.ip?.source6;
  const destination = tuple?.ip?.destination4 ?? tuple?.ip?.destination6;
  if (source === undefined || destination === undefined) return undefined;
  const { sourcePort = 0, destinationPort = 0 } = tuple?.protocol ?? {};
  return { source, destination, sourcePort, destinationPort };
}

/** Makes the kernel forget connections. One that ended meanwhile is no error; another failure is thrown. */
export function deleteConnections(netlink: Netlink, connections: readonly Connection[]): void {
  if (connections.length === 0) return;
  const errors = netlink.batch((requests) => {
    for (const { message } of connections) {
      const { original, zone, id } = message.attributes;
      const family = message.header.family;
      requests.request(conntrackFormat, "DEL", 0, { family }, { original, zone, id }, "connection");
    }
  });
  for (const error of errors) if (error !== undefined && error.code !== "ENOENT") throw error;
}
