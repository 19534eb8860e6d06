import {
  type Conf,
  ip,
  makeNamespace,
  makeNode,
  type TestNamespace,
  type TestNode,
} from "@tscni/test-support";
import { atLeast } from "@tscni/types";

/*
 *            eth0 10.1.0.2 fd01::2 ── router a ──┐
 *  container                                     ├── client 10.9.1.9 10.9.2.9 fd91::9 fd92::9
 *            net1 10.2.0.2 fd02::2 ── router b ──┘
 *
 * The container's default routes go by eth0. Each router drops what has the other one's addresses as its source, so
 * that an answer that takes the wrong way is lost.
 */
export interface Lab {
  node: TestNode;
  container: TestNamespace;
  client: TestNamespace;
  /** A config for sbr behind a plugin that made net1. */
  conf(more?: object): Conf;
  /** Rules of a source in the container, as `10.2.0.2 100`. */
  rules(): string[];
  /** Routes of a table in the container, both families, but for link-local ones. */
  routes(table: string | number): string[];
  /** Whether the client gets an answer from an address. */
  reaches(address: string): boolean;
  close(): void;
}

export function makeLab(cniVersion = "1.1.0"): Lab {
  const node = makeNode();
  const container = node.container();
  const [client, a, b] = [makeNamespace("client"), makeNamespace("a"), makeNamespace("b")];
  const both = (ns: TestNamespace, ...args: string[]) => ns.run("ip", ...args);
  const connect = (left: TestNamespace, leftName: string, right: TestNamespace, rightName: string) => {
    left.run("ip", "link", "add", leftName, "type", "veth", "peer", "name", rightName, "netns", right.path);
    for (const [ns, name] of [
      [left, leftName],
      [right, rightName],
    ] as const) {
      ns.run("sysctl", "-qw", `net.ipv6.conf.${name}.accept_dad=0`);
      both(ns, "link", "set", name, "up");
    }
  };
  const address = (ns: TestNamespace, dev: string, ...list: string[]) => {
    for (const each of list)
      both(ns, "addr", "add", each, "dev", dev, ...(each.includes(":") ? ["nodad"] : []));
  };
  for (const [n, router, dev, other] of [
    [1, a, "eth0", 2],
    [2, b, "net1", 1],
  ] as const) {
    connect(container, dev, router, "inner");
    connect(router, "outer", client, `up${n}`);
    address(container, dev, `10.${n}.0.2/24`, `fd0${n}::2/64`);
    address(router, "inner", `10.${n}.0.1/24`, `fd0${n}::1/64`);
    address(router, "outer", `10.9.${n}.1/24`, `fd9${n}::1/64`);
    address(client, `up${n}`, `10.9.${n}.9/24`, `fd9${n}::9/64`);
    both(client, "route", "add", `10.${n}.0.0/24`, "via", `10.9.${n}.1`);
    both(client, "route", "add", `fd0${n}::/64`, "via", `fd9${n}::1`);
    router.run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1");
    both(router, "rule", "add", "from", `10.${other}.0.0/24`, "blackhole");
    both(router, "-6", "rule", "add", "from", `fd0${other}::/64`, "blackhole");
  }
  both(container, "route", "add", "default", "via", "10.1.0.1");
  both(container, "route", "add", "default", "via", "fd01::1");
  // Both networks of the client are beyond both routers, for those who go that way.
  for (const [n, router] of [
    [2, a],
    [1, b],
  ] as const) {
    both(router, "route", "add", `10.9.${n}.0/24`, "via", `10.9.${3 - n}.9`);
    both(router, "route", "add", `fd9${n}::/64`, "via", `fd9${3 - n}::9`);
  }

  const ips = [
    { version: "4", address: "10.2.0.2/24", gateway: "10.2.0.1" },
    { version: "6", address: "fd02::2/64", gateway: "fd02::1" },
  ];
  const prevResult = atLeast(cniVersion, "0.3.0")
    ? {
        cniVersion,
        interfaces: [
          { name: "eth0", sandbox: container.path },
          { name: "net1", sandbox: container.path },
        ],
        ips: [
          { version: "4", address: "10.1.0.2/24", gateway: "10.1.0.1", interface: 0 },
          ...ips.map((each) => ({ ...each, interface: 1 })),
        ],
      }
    : {
        cniVersion,
        ip4: { ip: "10.2.0.2/24", gateway: "10.2.0.1" },
        ip6: { ip: "fd02::2/64", gateway: "fd02::1" },
      };
  return {
    node,
    container,
    client,
    conf: (more = {}) => ({ cniVersion, name: "sbr-tests", type: "sbr", prevResult, ...more }),
    rules: () =>
      ["-4", "-6"]
        .flatMap((family) => ip(container, family, "rule"))
        .filter((rule) => rule.src !== "all")
        .map((rule) => `${rule.src} ${rule.table}`),
    routes: (table) =>
      ["-4", "-6"]
        .flatMap((family) => tableOf(container, family, String(table)))
        .filter((route) => !route.dst.startsWith("fe80"))
        .map(({ dst, gateway, dev, prefsrc }) => [dst, gateway, dev, prefsrc].filter(Boolean).join(" "))
        .sort(),
    reaches(address) {
      try {
        return client.run("ping", "-c1", "-W1", address).includes(" 1 received");
      } catch {
        return false;
      }
    },
    close() {
      for (const ns of [client, a, b]) ns.close();
      node.close();
    },
  };
}

/** `ip route show table` fails for a table that never had a route. */
// biome-ignore lint/suspicious/noExplicitAny: what iproute2 prints
function tableOf(container: TestNamespace, family: string, table: string): any[] {
  return ip(container, family, "route", "show", "table", "all").filter(
    (route) => String(route.table ?? "main") === table,
  );
}
