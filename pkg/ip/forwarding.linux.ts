import { getLink, listRoutes, type Netlink } from "@tscni/netlink";
import { ensureSysctl, readSysctl, writeSysctl } from "./sysctl.linux.ts";

/** RTPROT_RA, linux/rtnetlink.h */
const fromRouterAdvertisement = 9;

/** Lets the host route packets of a family (the sysctls are those of the calling thread's namespace). */
export function enableForwarding(host: Netlink, family: 4 | 6): void {
  if (family === 4) {
    ensureSysctl("net/ipv4/ip_forward", "1");
    return;
  }
  if (readSysctl("net/ipv6/conf/all/forwarding") === "1") return;
  keepRouterAdvertisements(host);
  writeSysctl("net/ipv6/conf/all/forwarding", "1");
}

/**
 * A forwarding host ignores router advertisements unless accept_ra is 2, and would lose the default route
 * that it learned from them (Documentation/networking/ip-sysctl.rst).
 */
function keepRouterAdvertisements(host: Netlink): void {
  const learned = listRoutes(host, { family: 6 }).filter(
    (route) => route.protocol === fromRouterAdvertisement,
  );
  for (const index of new Set(learned.map((route) => route.index))) {
    const link = index === undefined ? undefined : getLink(host, { index });
    if (link === undefined) continue;
    const key = `net/ipv6/conf/${link.name}/accept_ra`;
    if (readSysctl(key) === "1") writeSysctl(key, "2");
  }
}
