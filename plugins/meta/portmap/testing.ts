import { existsSync, readdirSync, rmSync } from "node:fs";
import type { NftObject } from "@tscni/nftables";
import { type Conf, commandIn, ip, makeNode, type TestNamespace, type TestNode } from "@tscni/test-support";
import { expect } from "vitest";

// For tests: a host with containers behind a bridge, and a neighbour on a network that the host is on.

export type Backend = "iptables" | "nftables";
export const backends: readonly Backend[] = ["iptables", "nftables"];

/** A container as one plugin after the other attached it. */
export interface Attached {
  id: string;
  ns: TestNamespace;
  ifName: string;
  /** The config of portmap as the runtime passes it from now on, with the result. */
  conf: Conf;
  addresses: { 4: string; 6: string };
}

export interface Wanted {
  id?: string;
  ifName?: string;
  ns?: TestNamespace;
  /** Keys of portmap's config. */
  own?: object;
  /** The network: its own bridge, subnets and name. */
  network?: number;
  /** A folder of other plugins, such as Go's, for portmap. */
  bin?: string;
}

export interface Lab {
  readonly node: TestNode;
  /** A neighbour of the host, which is 192.0.2.1 and fd02::1 there. */
  readonly outside: TestNamespace;
  /** The network's name, its own in every lab: records of all tests are in one folder. */
  networkName(network?: number): string;
  /** The bridge plugin's part alone: returns what portmap's call takes. */
  connect(wanted?: Wanted, ports?: readonly object[]): Promise<Attached>;
  /** Both plugins' ADD. */
  publish(ports: readonly object[], wanted?: Wanted): Promise<Attached>;
  /** DEL of both, in the order of runtimes. */
  remove(attached: Attached): Promise<void>;
  /** DEL of the bridge alone. */
  disconnect(attached: Attached): Promise<void>;
  /** Runs a server in a container until the lab closes, at an address or all. It answers `ID PEER`. */
  serve(attached: Attached, kind: string, port: number, at?: string): void;
  /** What a server answers; undefined when there is none to be reached within two seconds, or as many times that. */
  ask(
    from: TestNamespace,
    kind: string,
    address: string,
    port: number,
    patience?: number,
  ): string | undefined;
  close(): void;
}

export const port = (hostPort: number, containerPort = 80, more: object = {}) => ({
  hostPort,
  containerPort,
  protocol: "tcp",
  ...more,
});

export function makeLab(backend: Backend, own: object = {}): Lab {
  const node = makeNode();
  const { host } = node;
  const outside = makeOutside(node);
  const prefix = `pm${crypto.randomUUID().slice(0, 8)}`;
  const servers: { kill(): void }[] = [];
  // Frames between ports of a bridge don't meet netfilter here, as on machines without br_netfilter.
  for (const family of ["ip", "ip6"])
    if (host.run("sh", "-c", "ls /proc/sys/net/bridge 2>/dev/null || true").includes(`call-${family}tables`))
      host.run("sysctl", "-qw", `net.bridge.bridge-nf-call-${family}tables=0`);
  const networkName = (network = 0) => `${prefix}n${network}`;
  const bridgeOf = (network: number, ifName: string): Conf =>
    node.bridgeConf(
      {
        name: networkName(network),
        bridge: `brpm${network}`,
        isGateway: true,
        isDefaultGateway: ifName === "eth0",
      },
      [`10.${88 + network}.0.0/24`, `fd${88 + network}::/64`],
    );

  const lab: Lab = {
    node,
    outside,
    networkName,
    async connect(
      { id = "c1", ifName = "eth0", ns = node.container(), own: more = {}, network = 0 } = {},
      ports = [],
    ) {
      const result = await node.ok("ADD", bridgeOf(network, ifName), { netns: ns, id, ifName });
      const conf: Conf = {
        cniVersion: "1.1.0",
        name: networkName(network),
        type: "portmap",
        backend,
        ...own,
        ...more,
        runtimeConfig: { portMappings: ports },
        prevResult: result,
      };
      const addresses = result.ips.map((entry: { address: string }) => entry.address.split("/")[0]);
      return { id, ns, ifName, conf, addresses: { 4: addresses[0], 6: addresses[1] } };
    },
    async publish(ports, wanted = {}) {
      const attached = await lab.connect(wanted, ports);
      const { conf, ns, id, ifName } = attached;
      const result = await node.ok("ADD", conf, {
        netns: ns,
        id,
        ifName,
        ...(wanted.bin ? { bin: wanted.bin } : {}),
      });
      expect(result).toEqual(conf.prevResult);
      return attached;
    },
    async remove(attached) {
      const { conf, ns, id, ifName } = attached;
      await node.ok("DEL", conf, { netns: ns, id, ifName });
      await lab.disconnect(attached);
    },
    async disconnect({ conf, ns, id, ifName }) {
      const network = Number(conf.name.split("n")[1]);
      await node.ok("DEL", bridgeOf(network, ifName), { netns: ns, id, ifName });
    },
    serve({ id, ns }, kind, number, at) {
      const [protocol = "", family = "4"] = [kind.slice(0, -1), kind.at(-1)];
      const bind = at === undefined ? "" : `,bind=${family === "6" ? `[${at}]` : at}`;
      const only = `${family === "6" ? ",ipv6only=1" : ""}${bind}`;
      const address = {
        tcp: `TCP${family}-LISTEN:${number},fork,reuseaddr${only}`,
        udp: `UDP${family}-RECVFROM:${number},fork${only}`,
        sctp: `SCTP${family}-LISTEN:${number},fork,reuseaddr${only}`,
      }[protocol];
      const command = commandIn(ns, ["socat", address!, `SYSTEM:read x; echo ${id} $SOCAT_PEERADDR`]);
      servers.push(Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "ignore" }));
      const flag = protocol === "udp" ? "-uln" : protocol === "tcp" ? "-tln" : "-Sln";
      for (let i = 0; i < 200; i++) {
        if (ns.run("ss", flag, `-${family}`, "-H").includes(`:${number} `)) return;
        Bun.sleepSync(10);
      }
      throw new Error(`no ${kind} server on port ${number} of ${id}`);
    },
    ask(from, kind, address, number, patience = 1) {
      const type = { tcp: "TCP", udp: "UDP", sctp: "SCTP" }[kind.slice(0, -1)];
      const to = address.includes(":") ? `[${address}]` : address;
      const options = kind.startsWith("udp") ? "" : `,connect-timeout=${0.7 * patience}`;
      try {
        const answer = from.run(
          "timeout",
          `${2 * patience}`,
          "sh",
          "-c",
          `{ echo hello; sleep ${0.15 * patience}; } | socat -t ${0.5 * patience} -T ${0.6 * patience} - ${type}:${to}:${number}${options}`,
        );
        return answer.trim() || undefined;
      } catch {
        return undefined;
      }
    },
    close() {
      for (const server of servers) server.kill();
      node.close();
      for (const network of [0, 1, 2])
        rmSync(`/run/tscni/portmap/${networkName(network)}`, { recursive: true, force: true });
    },
  };
  return lab;
}

function makeOutside(node: TestNode): TestNamespace {
  const outside = node.container();
  const { host } = node;
  // A link that is up just now has no link-local address to ask for neighbours from, for a second.
  for (const ns of [host, outside]) ns.run("sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0");
  host.run("ip", "link", "add", "up0", "type", "veth", "peer", "name", "eth0", "netns", outside.path);
  for (const [ns, dev, last] of [
    [host, "up0", 1],
    [outside, "eth0", 2],
  ] as const) {
    ns.run("ip", "addr", "add", `192.0.2.${last}/24`, "dev", dev);
    ns.run("ip", "addr", "add", `fd02::${last}/64`, "dev", dev, "nodad");
    ns.run("ip", "link", "set", dev, "up");
  }
  outside.run("ip", "route", "add", "default", "via", "192.0.2.1");
  outside.run("ip", "-6", "route", "add", "default", "via", "fd02::1");
  host.run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1");
  return outside;
}

/** What there is of containers on a host: their chains and what leads there, elements of our maps, Go's rules. */
export function traces({ host }: TestNode): string[] {
  const saved = ["iptables-save", "ip6tables-save"].flatMap((tool) =>
    host
      .run(tool, "-t", "nat")
      .split("\n")
      .filter((line) => /CNI-[DS]N-/.test(line))
      .map((line) => `${tool} ${line.replace(/ \[\d+:\d+\]/, "")}`),
  );
  const listing = JSON.parse(host.run("nft", "-j", "list", "ruleset")).nftables as NftObject[];
  const elements = listing
    .filter(({ map }) => map?.table.startsWith("tscni_portmap"))
    .flatMap(({ map }) =>
      (map.elem ?? []).map((each: unknown) => `${map.table} ${map.name} ${JSON.stringify(each)}`),
    );
  const rules = listing
    .filter(({ rule }) => rule?.table === "cni_hostport" && rule.comment)
    .map(({ rule }) => `${rule.family} ${rule.table} ${rule.chain} ${rule.comment}`);
  return [...saved, ...elements, ...rules];
}

/** Our records of a network, without those that a killed process was about to write. */
export const recordsOf = (network: string): string[] => {
  const folder = `/run/tscni/portmap/${network}`;
  return existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => !name.startsWith("."))
        .toSorted()
    : [];
};

/** The host's interface that is a container's other end. */
export const vethOf = (node: TestNode, attached: Attached): string =>
  attached.conf.prevResult.interfaces.find(
    (i: { name: string; sandbox?: string }) => i.name.startsWith("veth") && !i.sandbox,
  )?.name ?? ip(node.host, "link", "show", "type", "veth")[0].ifname;
