import { ip } from "@tscni/test-support";
import { describeHandOver } from "./handover.ts";

describeHandOver(
  "ptp",
  [
    ["dual stack", {}, ["10.88.0.0/24", "fd88::/64"]],
    ["IPv4, mtu", { mtu: 1400 }, ["10.88.0.0/24"]],
  ],
  {
    /** What the host has for the container. */
    state(node) {
      const [name] = node.veths();
      const [link] = ip(node.host, "addr", "show", "dev", name!, "scope", "global");
      return {
        addresses: link.addr_info.map(
          (a: { local: string; prefixlen: number }) => `${a.local}/${a.prefixlen}`,
        ),
        routes: ip(node.host, "route", "show", "dev", name!).map((r) => [r.dst, r.scope]),
        forwarding: node.host.run("sysctl", "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"),
      };
    },
  },
);
