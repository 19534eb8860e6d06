import { ipBytes } from "@tscni/addr";
import fc from "fast-check";
import * as rt from "netlink/dist/rt/gen_structs.js";
import * as ifla from "netlink/dist/rt/ifla.js";
import { AttrStream } from "netlink/dist/structs.js";
import { describe, expect, test } from "vitest";
import { attributesOf, fieldsOf } from "./arbitrary.ts";
import * as codecs from "./codecs.ts";
import type { Attributes, Struct } from "./table.ts";
import { addressFormat } from "./tables/address.ts";
import { kinds, slaveKinds } from "./tables/kinds.ts";
import { bridgeLinkFormat, linkFormat } from "./tables/link.ts";
import { neighbourFormat } from "./tables/neighbour.ts";
import { routeFormat } from "./tables/route.ts";
import { ruleFormat } from "./tables/rule.ts";
import { Wire } from "./wire.ts";

// node-netlink (npm "netlink") has codecs for the same messages, written by somebody else from the same kernel
// headers. What we write it must read as the same values, and the reverse. It knows the attributes of about
// Linux 5.14; what is newer is listed as `undefined`.

/** Our name of an attribute (or field) to theirs. */
type Names = Record<string, string | undefined>;

interface Opinion {
  table: Attributes<any>;
  parse(data: Buffer): object;
  format(values: any): unknown;
  names: Names;
  /** What they read into an object, written back by them: a number, or the payload. */
  back?: Record<string, (value: any) => unknown>;
}

const entriesOf = (table: Attributes<any>) => table.entries as Record<string, [number, codecs.Codec<any>]>;

/** The nested table of an attribute. */
const within = (table: Attributes<any>, name: string) => entriesOf(table)[name]![1] as Attributes<any>;

const linkInfo = within(linkFormat.attributes, "linkInfo");

const opinions: Record<string, Opinion> = {
  link: {
    table: linkFormat.attributes,
    parse: ifla.parseLinkAttrs,
    format: ifla.formatLinkAttrs,
    names: {
      address: "address",
      broadcast: "broadcast",
      name: "ifname",
      mtu: "mtu",
      link: "link",
      qdisc: "qdisc",
      master: "master",
      txQueueLen: "txqlen",
      operState: "operstate",
      linkMode: "linkmode",
      netNsPid: "netNsPid",
      alias: "ifalias",
      group: "group",
      netNsFd: "netNsFd",
      extMask: "extMask",
      promiscuity: "promiscuity",
      numTxQueues: "numTxQueues",
      numRxQueues: "numRxQueues",
      carrier: "carrier",
      carrierChanges: "carrierChanges",
      linkNetnsId: "linkNetnsid",
      protoDown: "protoDown",
      gsoMaxSegs: "gsoMaxSegs",
      gsoMaxSize: "gsoMaxSize",
      newNetnsId: "newNetnsid",
      targetNetnsId: "targetNetnsid",
      carrierUpCount: "carrierUpCount",
      carrierDownCount: "carrierDownCount",
      newIfIndex: "newIfindex",
      minMtu: "minMtu",
      maxMtu: "maxMtu",
      properties: "propList",
      altName: "altIfname",
      permAddress: "permAddress",
      parentDevName: undefined,
      parentDevBusName: undefined,
      allMulti: undefined,
      linkInfo: "linkinfo",
      families: "afSpec",
    },
    back: { families: (map: Map<number, Buffer>) => attributesIn([...map]) },
  },
  linkInfo: {
    table: linkInfo,
    parse: ifla.parseInfo,
    format: ifla.formatInfo,
    names: { kind: "kind", data: "data", slaveKind: "slaveKind", slaveData: "slaveData" },
  },
  inet6: {
    table: within(within(linkFormat.attributes, "families"), "inet6"),
    parse: ifla.parseLinkProtocolInfoInet6,
    format: ifla.formatLinkProtocolInfoInet6,
    names: { flags: "flags", token: "token", addrGenMode: "addrGenMode" },
  },
  bridgeFamily: {
    table: within(bridgeLinkFormat.attributes, "bridge"),
    parse: ifla.parseBridgeSpec,
    format: ifla.formatBridgeSpec,
    names: { flags: "flags", mode: "mode", vlans: "vlanInfo" },
  },
  veth: {
    table: kinds.veth,
    parse: ifla.parseVethInfo,
    format: ifla.formatVethInfo,
    names: { peer: "peer" },
  },
  bridge: {
    table: kinds.bridge,
    parse: ifla.parseBridge,
    format: ifla.formatBridge,
    names: {
      forwardDelay: "forwardDelay",
      helloTime: "helloTime",
      maxAge: "maxAge",
      ageingTime: "ageingTime",
      stpState: "stpState",
      priority: "priority",
      vlanFiltering: "vlanFiltering",
      vlanProtocol: "vlanProtocol",
      groupFwdMask: "groupFwdMask",
      groupAddress: "groupAddr",
      multicastRouter: "mcastRouter",
      multicastSnooping: "mcastSnooping",
      multicastQuerier: "mcastQuerier",
      nfCallIptables: "nfCallIptables",
      nfCallIp6tables: "nfCallIp6tables",
      nfCallArptables: "nfCallArptables",
      vlanDefaultPvid: "vlanDefaultPvid",
      vlanStatsEnabled: "vlanStatsEnabled",
    },
  },
  bridgePort: {
    table: slaveKinds.bridge,
    parse: ifla.parseBridgePort,
    format: ifla.formatBridgePort,
    names: {
      state: "state",
      priority: "priority",
      cost: "cost",
      hairpin: "mode",
      guard: "guard",
      protect: "protect",
      fastLeave: "fastLeave",
      learning: "learning",
      unicastFlood: "unicastFlood",
      proxyArp: "proxyarp",
      proxyArpWifi: "proxyarpWifi",
      designatedPort: "designatedPort",
      id: "id",
      number: "no",
      multicastRouter: "multicastRouter",
      multicastFlood: "mcastFlood",
      multicastToUnicast: "mcastToUcast",
      vlanTunnel: "vlanTunnel",
      broadcastFlood: "bcastFlood",
      groupFwdMask: "groupFwdMask",
      neighSuppress: "neighSuppress",
      isolated: "isolated",
      backupPort: "backupPort",
      locked: undefined,
    },
  },
  vlan: {
    table: kinds.vlan,
    parse: ifla.parseVlan,
    format: ifla.formatVlan,
    // The protocol is in network order (nla_put_be16 in net/8021q/vlan_netlink.c); theirs is in host order.
    names: {
      id: "id",
      flags: "flags",
      egressQos: "egressQos",
      ingressQos: "ingressQos",
      protocol: undefined,
    },
  },
  macvlan: {
    table: kinds.macvlan,
    parse: ifla.parseMacvlan,
    format: ifla.formatMacvlan,
    names: { mode: "mode", flags: "flags", bcQueueLen: undefined, bcQueueLenUsed: undefined },
  },
  ipvlan: {
    table: kinds.ipvlan,
    parse: ifla.parseIpvlan,
    format: ifla.formatIpvlan,
    names: { mode: "mode", flags: "flags" },
  },
  vxlan: {
    table: kinds.vxlan,
    parse: ifla.parseVxlan,
    format: ifla.formatVxlan,
    names: {
      id: "id",
      group: "group",
      link: "link",
      local: "local",
      ttl: "ttl",
      tos: "tos",
      learning: "learning",
      ageing: "ageing",
      limit: "limit",
      portRange: "portRange",
      proxy: "proxy",
      port: "port",
      group6: "group6",
      local6: "local6",
      udpCsum: "udpCsum",
      udpZeroCsum6Tx: "udpZeroCsum6Tx",
      udpZeroCsum6Rx: "udpZeroCsum6Rx",
      // In network order (nla_put_be32 in drivers/net/vxlan); theirs is in host order.
      label: undefined,
    },
  },
  vrf: { table: kinds.vrf, parse: ifla.parseVrf, format: ifla.formatVrf, names: { table: "table" } },
  vrfPort: {
    table: slaveKinds.vrf,
    parse: ifla.parseVrfPort,
    format: ifla.formatVrfPort,
    names: { table: "table" },
  },
  tun: {
    table: kinds.tun,
    parse: ifla.parseTun,
    format: ifla.formatTun,
    names: {
      owner: "owner",
      group: "group",
      type: "type",
      packetInfo: "pi",
      vnetHeader: "vnetHdr",
      persist: "persist",
      multiQueue: "multiQueue",
      queues: "numQueues",
      disabledQueues: "numDisabledQueues",
    },
  },
  address: {
    table: addressFormat.attributes,
    parse: rt.parseAddressAttrs,
    format: rt.formatAddressAttrs,
    names: {
      address: "address",
      local: "local",
      label: "label",
      broadcast: "broadcast",
      anycast: "anycast",
      cacheInfo: "cacheInfo",
      multicast: "multicast",
      flags: "flags",
      priority: "rtPriority",
      targetNetnsId: "targetNetnsid",
      protocol: undefined,
    },
    back: { cacheInfo: rt.formatAddressCacheInfo, flags: rt.formatAddressFlags },
  },
  route: {
    table: routeFormat.attributes,
    parse: rt.parseRouteAttrs,
    format: rt.formatRouteAttrs,
    names: {
      destination: "dst",
      source: "src",
      inIndex: "iif",
      outIndex: "oif",
      gateway: "gateway",
      priority: "priority",
      preferredSource: "prefsrc",
      metrics: "metrics",
      nextHops: "multipath",
      flow: "flow",
      cacheInfo: "cacheInfo",
      table: "table",
      mark: "mark",
      via: undefined, // theirs reads one byte of the address
      preference: "pref",
      encapType: "encapType",
      expires: "expires",
      uid: "uid",
      ttlPropagate: "ttlPropagate",
      ipProtocol: "ipProto",
      sourcePort: "sport",
      destinationPort: "dport",
      nextHopId: "nhId",
    },
    back: {
      metrics: (value) => bytesOf(rt.formatRouteMetrics(value)),
      cacheInfo: rt.formatRouteCacheInfo,
    },
  },
  routeMetrics: {
    table: within(routeFormat.attributes, "metrics"),
    parse: rt.parseRouteMetrics,
    format: rt.formatRouteMetrics,
    names: {
      lock: "lock",
      mtu: "mtu",
      window: "window",
      rtt: "rtt",
      ssthresh: "ssthresh",
      cwnd: "cwnd",
      advmss: "advmss",
      reordering: "reordering",
      hopLimit: "hoplimit",
      initCwnd: "initcwnd",
      rtoMin: "rtoMin",
      initRwnd: "initrwnd",
      quickAck: "quickack",
      congestionControl: "ccAlgo",
    },
  },
  rule: {
    table: ruleFormat.attributes,
    parse: rt.parseRuleAttrs,
    format: rt.formatRuleAttrs,
    names: {
      destination: "dst",
      source: "src",
      inName: "iifname",
      goto: "goto",
      priority: "priority",
      mark: "fwmark",
      flow: "flow",
      suppressGroup: "suppressIfgroup",
      suppressPrefix: "suppressPrefixlen",
      table: "table",
      markMask: "fwmask",
      outName: "oifname",
      l3mdev: "l3Mdev",
      uidRange: "uidRange",
      protocol: "protocol",
      ipProtocol: "ipProto",
      sourcePorts: "sportRange",
      destinationPorts: "dportRange",
    },
    back: {
      uidRange: rt.formatRuleUidRange,
      sourcePorts: rt.formatRulePortRange,
      destinationPorts: rt.formatRulePortRange,
    },
  },
  neighbour: {
    table: neighbourFormat.attributes,
    parse: rt.parseNeighborAttrs,
    format: rt.formatNeighborAttrs,
    names: {
      destination: "dst",
      address: "lladdr",
      cacheInfo: "cacheInfo",
      probes: "probes",
      vlan: "vlan",
      port: "port",
      vni: "vni",
      ifIndex: "ifindex",
      master: "master",
      linkNetnsId: "linkNetnsid",
      sourceVni: "srcVni",
      protocol: "protocol",
      flagsExt: undefined,
    },
    back: { cacheInfo: rt.formatNeighborCacheInfo },
  },
};

function bytesOf(data: unknown): Buffer {
  const stream = new AttrStream();
  stream.emit(data as never);
  return Buffer.concat(stream.bufs);
}

const attributesIn = (entries: [number, Buffer][]): Buffer =>
  bytesOf((out: AttrStream) => {
    for (const [type, data] of entries) out.push(type, data);
  });

/** The payload of one value as another hand writes it; undefined for what nests, which has an opinion of its own. */
function payloadOf(codec: codecs.Codec<any>, value: any): Buffer | undefined {
  const filled = (size: number, write: (buffer: Buffer) => unknown) => {
    const buffer = Buffer.alloc(size);
    write(buffer);
    return buffer;
  };
  if (codec === codecs.u8 || codec === codecs.bool) return Buffer.of(Number(value));
  if (codec === codecs.u16) return filled(2, (b) => b.writeUInt16LE(value));
  if (codec === codecs.u16be) return filled(2, (b) => b.writeUInt16BE(value));
  if (codec === codecs.u32) return filled(4, (b) => b.writeUInt32LE(value));
  if (codec === codecs.i32) return filled(4, (b) => b.writeInt32LE(value));
  if (codec === codecs.mac) return Buffer.from(value.replaceAll(":", ""), "hex");
  if (codec === codecs.ip) return Buffer.from(ipBytes(value));
  if (codec === codecs.cString) return Buffer.from(`${value}\0`);
  if (codec === codecs.bytes) return Buffer.from(value);
  return undefined;
}

function written(table: codecs.Codec<any>, value: unknown): Buffer {
  const wire = new Wire(64);
  table.put(wire, value, {});
  return Buffer.from(wire.bytes.slice(0, wire.at));
}

function readBack(table: codecs.Codec<any>, data: Uint8Array): unknown {
  const wire = new Wire(data.length);
  wire.putBytes(data);
  return table.get(wire, 0, data.length, {});
}

/**
 * Values that they can hold: of a repeated attribute they keep one, and their bitwise operators make the highest
 * bit of a flag set a sign, which they then can't write.
 */
function holdable(values: Record<string, unknown>): Record<string, unknown> {
  const reduced = (key: string, value: unknown) => {
    if (key === "vlans") return (value as unknown[]).slice(0, 1);
    return (key === "flags" || key === "change") && typeof value === "number" ? value & 0x7fffffff : value;
  };
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, reduced(key, value)]));
}

describe.each(Object.entries(opinions))("%s", (_, { table, parse, format, names, back = {} }) => {
  const ours = entriesOf(table);

  test("every attribute has a name over there, or is known to have none", () => {
    expect(Object.keys(names).sort()).toEqual(Object.keys(ours).sort());
  });

  const shared = Object.keys(names).filter((name) => names[name] !== undefined);
  const samples = attributesOf(table).map((values) =>
    holdable(Object.fromEntries(Object.entries(values).filter(([name]) => shared.includes(name)))),
  );

  test("what we write it reads", () => {
    fc.assert(
      fc.property(samples, (values) => {
        const theirs = parse(written(table, values)) as Record<string, unknown>;
        expect(Object.keys(theirs).sort()).toEqual(
          Object.keys(values)
            .map((name) => names[name])
            .sort(),
        );
        for (const [name, value] of Object.entries(values)) {
          const codec = ours[name]![1];
          const found = theirs[names[name]!];
          const expected = payloadOf(codec, value);
          if (back[name]) {
            const again = back[name](found);
            expect(typeof again === "number" ? again : readBack(codec, again as Buffer)).toEqual(value);
          } else if (typeof found === "number") expect(found | 0).toBe(Number(value) | 0);
          else if (typeof found === "string") expect(found).toBe(value);
          else if (expected !== undefined) expect(found).toEqual(expected);
        }
      }),
    );
  });

  test("what it writes we read", () => {
    fc.assert(
      fc.property(samples, (values) => {
        const example = parse(written(table, values)) as Record<string, unknown>;
        const theirs: Record<string, unknown> = {};
        for (const [name, value] of Object.entries(values)) {
          const shape = example[names[name]!];
          if (back[name]) theirs[names[name]!] = shape;
          else if (typeof shape === "number") theirs[names[name]!] = Number(value) >>> 0;
          else if (typeof shape === "string") theirs[names[name]!] = value;
          else theirs[names[name]!] = payloadOf(ours[name]![1], value) ?? shape;
          if (typeof shape === "number" && ours[name]![1] === codecs.i32 && shape < 0)
            theirs[names[name]!] = value;
        }
        expect(readBack(table, bytesOf(format(theirs)))).toEqual(values);
      }),
    );
  });
});

interface HeaderOpinion {
  header: Struct<any>;
  parse(data: Buffer): object;
  format(values: any): Buffer;
  names: Names;
  back?: Record<string, (value: any) => number>;
}

/** Their enumerations read as a name when they know one. */
const byName = (mapping: Record<string, string | number>) => (value: string | number) =>
  typeof value === "string" ? Number(mapping[value]) : value;

const headers: Record<string, HeaderOpinion> = {
  link: {
    header: linkFormat.header,
    parse: rt.parseLink,
    format: rt.formatLink,
    names: { family: "family", type: "type", index: "index", flags: "flags", change: "change" },
    back: {
      type: byName(rt.LinkType),
      flags: rt.formatDeviceFlags,
      change: rt.formatDeviceFlags,
    },
  },
  address: {
    header: addressFormat.header,
    parse: rt.parseAddress,
    format: rt.formatAddress,
    names: { family: "family", prefix: "prefixlen", flags: "flags", scope: "scope", index: "index" },
    back: { flags: rt.formatAddressFlags },
  },
  route: {
    header: routeFormat.header,
    parse: rt.parseRoute,
    format: rt.formatRoute,
    names: {
      family: "family",
      destinationPrefix: "dstLen",
      sourcePrefix: "srcLen",
      tos: "tos",
      table: "table",
      protocol: "protocol",
      scope: "scope",
      type: "type",
      flags: "flags",
    },
    back: {
      protocol: byName(rt.RouteProtocol),
      scope: byName(rt.RouteScope),
      type: byName(rt.RouteType),
      flags: rt.formatRouteFlags,
    },
  },
  rule: {
    header: ruleFormat.header,
    parse: rt.parseRule,
    format: rt.formatRule,
    names: {
      family: "family",
      destinationPrefix: "dstLen",
      sourcePrefix: "srcLen",
      tos: "tos",
      table: "table",
      action: "action",
      flags: "flags",
    },
    back: { action: byName(rt.RuleAction), flags: rt.formatRuleFlags },
  },
  neighbour: {
    header: neighbourFormat.header,
    parse: rt.parseNeighbor,
    format: rt.formatNeighbor,
    names: { family: "family", index: "ifindex", state: "state", flags: "flags", type: "type" },
    back: { state: rt.formatNeighborState, flags: rt.formatNeighborFlags },
  },
};

describe.each(Object.entries(headers))("header of %s", (_, { header, parse, format, names, back = {} }) => {
  test("what we write it reads, and what it writes we read", () => {
    fc.assert(
      fc.property(fieldsOf(header).map(holdable), (fields) => {
        const theirs = parse(written(header, fields)) as Record<string, unknown>;
        const read = Object.fromEntries(
          Object.keys(fields).map((name) => {
            const found = theirs[names[name]!];
            return [name, back[name] ? back[name](found) : found];
          }),
        );
        expect(read).toEqual(fields);
        expect(readBack(header, format(theirs))).toEqual(fields);
      }),
    );
  });
});

test("struct bridge_vlan_info", () => {
  const { each } = entriesOf(within(bridgeLinkFormat.attributes, "bridge")).vlans![1];
  fc.assert(
    fc.property(fieldsOf(each as Struct<any>), (info) => {
      expect(ifla.parseBridgeVlanInfo(written(each!, info))).toEqual(info);
      expect(readBack(each!, ifla.formatBridgeVlanInfo(info))).toEqual(info);
    }),
  );
});

test("a veth's peer is a link message", () => {
  const peer = { name: "eth0", mtu: 1400, netNsFd: 7, address: "02:00:00:00:00:01" };
  const message = ifla.parseVethInfo(written(kinds.veth, { peer })).peer!;
  expect(rt.parseLink(message.subarray(0, 16))).toMatchObject({ family: 0, index: 0 });
  expect(ifla.parseLinkAttrs(message.subarray(16))).toEqual({
    ifname: "eth0",
    mtu: 1400,
    netNsFd: 7,
    address: Buffer.of(2, 0, 0, 0, 0, 1),
  });
});

test("next hops are struct rtnexthop with attributes behind", () => {
  const gateway = { family: 4 as const, value: 0x0a000001n };
  const nextHops = [{ flags: 4, hops: 2, index: 9, gateway }];
  const data = rt.parseRouteAttrs(written(routeFormat.attributes, { nextHops })).multipath!;
  expect(rt.parseRouteNextHop(data.subarray(0, 8))).toEqual({
    len: 16,
    flags: { onlink: true },
    hops: 2,
    ifindex: 9,
  });
  expect(rt.parseRouteAttrs(data.subarray(8))).toEqual({ gateway: Buffer.of(10, 0, 0, 1) });
});
