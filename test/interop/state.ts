import { ip, type TestNamespace } from "@tscni/test-support";

const pick = (entry: Record<string, unknown>, keys: string[]) =>
  keys.map((key) => `${key} ${entry[key]}`).join(" ");

/**
 * What a container's interface has, without what differs from run to run, and without what only we set: nodad,
 * and the sysctls accept_ra and ndisc_notify; and without `also`, sysctls that only we set for this plugin.
 */
export function interfaceState(ns: TestNamespace, ifName = "eth0", also: readonly string[] = []): object {
  const [link] = ip(ns, "addr", "show", "dev", ifName);
  return {
    link: [link.mtu, link.flags.includes("UP"), link.linkinfo?.info_kind, link.linkinfo?.info_data],
    addresses: link.addr_info
      .filter((entry: { scope: string }) => entry.scope === "global")
      .map((entry: Record<string, unknown>) => pick(entry, ["local", "prefixlen", "broadcast"])),
    routes: ["-4", "-6"].flatMap((family) =>
      ip(ns, family, "route", "show", "dev", ifName)
        .filter((route) => !route.dst.startsWith("fe80"))
        .map((route) => pick(route, ["dst", "gateway", "scope", "metric", "protocol", "prefsrc"])),
    ),
    sysctls: ["ipv4.conf.eth0.arp_notify", "ipv6.conf.eth0.keep_addr_on_down"]
      .filter((key) => !also.includes(key.split(".").at(-1)!))
      .map((key) => ns.run("sysctl", `net.${key}`.replace("eth0", ifName))),
  };
}

/** A result without MAC addresses and names that are random, and without the MTUs that only we report. */
export function withoutRandom(result: {
  interfaces?: { name: string; mac?: string; mtu?: number }[];
}): object {
  const interfaces = result.interfaces?.map(({ mtu: _, ...rest }) => ({
    ...rest,
    name: rest.name.replace(/^veth[0-9a-f]+$/, "veth"),
    mac: rest.mac?.length,
  }));
  return { ...result, ...(interfaces ? { interfaces } : {}) };
}
