import { ip } from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Attached, backends, type Lab, makeLab, port, recordsOf, traces } from "./testing.ts";

let lab: Lab;
afterEach(() => lab?.close());

describe.each(backends)("with %s", (backend) => {
  describe("packets get to the container", () => {
    let c: Attached;
    const ports = [port(8080), port(8080, 81, { protocol: "udp" }), port(8443, 443)];
    beforeEach(async () => {
      lab = makeLab(backend);
      c = await lab.publish(ports);
      for (const kind of ["tcp4", "tcp6"]) lab.serve(c, kind, 80);
      for (const kind of ["udp4", "udp6"]) lab.serve(c, kind, 81);
    });

    test("from outside, whose address it sees", () => {
      expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8080)).toBe("c1 192.0.2.2");
      expect(lab.ask(lab.outside, "udp4", "192.0.2.1", 8080)).toBe("c1 192.0.2.2");
      expect(lab.ask(lab.outside, "tcp6", "fd02::1", 8080)).toMatch(/^c1 \[fd02:/);
      expect(lab.ask(lab.outside, "udp6", "fd02::1", 8080)).toMatch(/^c1 \[fd02:/);
      expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8081)).toBeUndefined();
    });

    test("from the host, by 127.0.0.1 and by each of its addresses", () => {
      const { host } = lab.node;
      for (const address of ["127.0.0.1", "10.88.0.1", "192.0.2.1"]) {
        expect(lab.ask(host, "tcp4", address, 8080), address).toMatch(/^c1 /);
        expect(lab.ask(host, "udp4", address, 8080), address).toMatch(/^c1 /);
      }
      for (const address of ["fd88::1", "fd02::1"])
        expect(lab.ask(host, "tcp6", address, 8080), address).toMatch(/^c1 /);
      if (backend === "iptables") return;
      const start = performance.now();
      expect(lab.ask(host, "tcp6", "::1", 8080)).toBeUndefined();
      expect(performance.now() - start, "refused at once").toBeLessThan(500);
    });

    test("from another container on the bridge, and from itself", async () => {
      const other = await lab.connect({ id: "c2" });
      for (const from of [other.ns, c.ns]) {
        expect(lab.ask(from, "tcp4", "10.88.0.1", 8080)).toBe("c1 10.88.0.1");
        expect(lab.ask(from, "udp4", "10.88.0.1", 8080)).toBe("c1 10.88.0.1");
        expect(lab.ask(from, "tcp4", "192.0.2.1", 8080)).toBe("c1 10.88.0.1");
        expect(lab.ask(from, "tcp6", "fd88::1", 8080)).toMatch(/^c1 \[fd88:.*:0001\]$/);
      }
    });

    test("and no more after DEL", async () => {
      await lab.node.ok("DEL", c.conf, { netns: c.ns });
      for (const from of [lab.outside, lab.node.host])
        expect(lab.ask(from, "tcp4", "192.0.2.1", 8080)).toBeUndefined();
      expect(lab.ask(lab.outside, "tcp6", "fd02::1", 8080)).toBeUndefined();
    });
  });

  // CVE-2025-67499: a rule without a look at whether the address is the host's own took what was passing through.
  test("packets for others are never taken, wherever they come from", async () => {
    lab = makeLab(backend);
    const c = await lab.publish([port(8080), port(8080, 80, { protocol: "udp" })]);
    for (const kind of ["tcp4", "udp4", "tcp6", "udp6"]) lab.serve(c, kind, 80);
    const { host } = lab.node;
    const other = await lab.connect({ id: "c2" });
    // A server of somebody else, behind the neighbour.
    lab.outside.run("ip", "addr", "add", "203.0.113.9/32", "dev", "lo");
    lab.outside.run("ip", "addr", "add", "fd03::9/128", "dev", "lo", "nodad");
    lab.outside.run("ip", "link", "set", "lo", "up");
    host.run("ip", "route", "add", "203.0.113.9", "via", "192.0.2.2");
    host.run("ip", "-6", "route", "add", "fd03::9", "via", "fd02::2");
    const theirs = { ...other, id: "theirs", ns: lab.outside };
    for (const kind of ["tcp4", "udp4"]) lab.serve(theirs, kind, 8080, "203.0.113.9");
    for (const kind of ["tcp6", "udp6"]) lab.serve(theirs, kind, 8080, "fd03::9");
    for (const from of [other.ns, c.ns, host]) {
      for (const kind of ["tcp4", "udp4"])
        expect(lab.ask(from, kind, "203.0.113.9", 8080), kind).toMatch(/^theirs /);
      for (const kind of ["tcp6", "udp6"])
        expect(lab.ask(from, kind, "fd03::9", 8080), kind).toMatch(/^theirs /);
    }
    // And what comes through the host from outside, to another container's own port of that number.
    for (const kind of ["tcp4", "tcp6"]) lab.serve(other, kind, 8080);
    expect(lab.ask(lab.outside, "tcp4", other.addresses[4], 8080)).toMatch(/^c2 /);
    expect(lab.ask(lab.outside, "tcp6", other.addresses[6], 8080)).toMatch(/^c2 /);
  });

  test("hostIP: at that address alone; of another family not at all; unspecified, all of its family", async () => {
    lab = makeLab(backend);
    const c = await lab.publish([
      port(8080, 80, { hostIP: "192.0.2.1" }),
      port(8081, 80, { hostIP: "fd02::1" }),
      port(8082, 80, { hostIP: "0.0.0.0" }),
      port(8083, 80, { hostIP: "::" }),
      port(8084, 80, { hostIP: "127.0.0.1" }),
    ]);
    for (const kind of ["tcp4", "tcp6"]) lab.serve(c, kind, 80);
    const { outside } = lab;
    const { host } = lab.node;
    const open = (from: typeof outside, address: string) =>
      [8080, 8081, 8082, 8083, 8084].filter((number) =>
        lab.ask(from, address.includes(":") ? "tcp6" : "tcp4", address, number),
      );
    expect(open(outside, "192.0.2.1")).toEqual([8080, 8082]);
    expect(open(outside, "fd02::1")).toEqual([8081, 8083]);
    expect(open(host, "10.88.0.1")).toEqual([8082]);
    expect(open(host, "127.0.0.1")).toEqual([8082, 8084]);
    await lab.node.ok("CHECK", c.conf, { netns: c.ns });
    await lab.node.ok("DEL", c.conf, { netns: c.ns });
    expect(open(outside, "192.0.2.1")).toEqual([]);
  });

  test("masqAll hides the client; without snat nothing is hidden", async () => {
    lab = makeLab(backend);
    const all = await lab.publish([port(8080)], { own: { masqAll: true } });
    const none = await lab.publish([port(8081)], { id: "c2", own: { snat: false } });
    for (const c of [all, none]) for (const kind of ["tcp4", "tcp6"]) lab.serve(c, kind, 80);
    expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8080)).toBe("c1 10.88.0.1");
    expect(lab.ask(lab.outside, "tcp6", "fd02::1", 8080)).toMatch(/^c1 \[fd88:.*:0001\]$/);
    expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8081)).toBe("c2 192.0.2.2");
    expect(lab.ask(lab.node.host, "tcp4", "127.0.0.1", 8080)).toMatch(/^c1 /);
    for (const c of [all, none]) await lab.node.ok("CHECK", c.conf, { netns: c.ns, id: c.id });
  });

  test("connections that others lead to the container keep their source", async (test) => {
    lab = makeLab(backend);
    const { host } = lab.node;
    const c = await lab.publish([port(8080)]);
    const second = await lab.connect({ id: "c2" });
    lab.serve(c, "tcp4", 80);
    // As kube-proxy does, which has the answers between containers of a bridge meet netfilter.
    const key = "/proc/sys/net/bridge/bridge-nf-call-iptables";
    if (host.run("sh", "-c", `echo 1 >${key} 2>/dev/null && echo set || true`) === "")
      test.skip("the kernel lacks br_netfilter (CONFIG_BRIDGE_NETFILTER)");
    host.run("nft", "add table ip kube; add chain ip kube pre { type nat hook prerouting priority -110; }");
    host.run("nft", "add rule ip kube pre ip daddr 198.51.100.1 tcp dport 8080 dnat to 10.88.0.2:80");
    expect(lab.ask(second.ns, "tcp4", "198.51.100.1", 8080)).toBe("c1 10.88.0.3");
    expect(lab.ask(second.ns, "tcp4", "192.0.2.1", 8080)).toBe("c1 10.88.0.1");
  });

  test("a range of ports, as Podman passes it: one mapping each, many in a rule", async () => {
    lab = makeLab(backend);
    const ports = Array.from({ length: 40 }, (_, i) => port(9000 + i, 7000 + i, { hostIP: "" }));
    const c = await lab.publish(ports);
    for (const number of [7000, 7014, 7015, 7039]) lab.serve(c, "tcp4", number);
    for (const i of [0, 14, 15, 39])
      expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 9000 + i), `${9000 + i}`).toBe("c1 192.0.2.2");
    await lab.node.ok("CHECK", c.conf, { netns: c.ns });
    await lab.node.ok("DEL", c.conf, { netns: c.ns });
    expect(traces(lab.node)).toEqual([]);
  });

  test("sctp's rules are made, checked and removed wherever the kernel takes them", async () => {
    lab = makeLab(backend);
    const c = await lab.publish([port(8080, 80, { protocol: "SCTP" }), port(8080)]);
    await lab.node.ok("CHECK", c.conf, { netns: c.ns });
    await lab.node.ok("DEL", c.conf, { netns: c.ns });
    expect(traces(lab.node)).toEqual([]);
  });

  describe.each(specVersions)("cniVersion %s", (cniVersion) => {
    test("ADD hands the result on, CHECK is content, DEL leaves nothing, twice", async () => {
      lab = makeLab(backend);
      const ns = lab.node.container();
      const bridge = lab.node.bridgeConf({ cniVersion, name: lab.networkName(), isDefaultGateway: true });
      const prevResult = await lab.node.ok("ADD", bridge, { netns: ns });
      const conf = {
        cniVersion,
        name: lab.networkName(),
        type: "portmap",
        backend,
        prevResult,
        runtimeConfig: { portMappings: [port(8080)] },
      };
      expect(await lab.node.ok("ADD", conf, { netns: ns })).toEqual(prevResult);
      lab.serve({ id: "c1", ns } as Attached, "tcp4", 80);
      expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8080)).toBe("c1 192.0.2.2");
      if (atLeast(cniVersion, "0.4.0")) await lab.node.ok("CHECK", conf, { netns: ns });
      for (let i = 0; i < 2; i++) await lab.node.ok("DEL", conf, { netns: ns });
      expect([traces(lab.node), recordsOf(lab.networkName())]).toEqual([[], []]);
    });
  });

  test("without prevResult ADD refuses; without ports it hands the result on and does nothing", async () => {
    lab = makeLab(backend);
    const { conf, ns } = await lab.connect();
    const before = [traces(lab.node), ip(lab.node.host, "link").length];
    const error = await lab.node.error("ADD", { ...conf, prevResult: undefined }, { netns: ns });
    expect(error).toMatchObject({ code: 7, msg: "must be called as chained plugin" });
    expect(await lab.node.ok("ADD", conf, { netns: ns })).toEqual(conf.prevResult);
    const { runtimeConfig: _, ...bare } = conf;
    expect(await lab.node.ok("ADD", bare as typeof conf, { netns: ns })).toEqual(conf.prevResult);
    await lab.node.ok("CHECK", conf, { netns: ns });
    await lab.node.ok("DEL", conf, { netns: ns });
    expect([traces(lab.node), ip(lab.node.host, "link").length]).toEqual(before);
  });
});
