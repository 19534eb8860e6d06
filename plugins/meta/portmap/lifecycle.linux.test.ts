import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { envOf, runPlugin } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Attached, backends, type Lab, makeLab, port, recordsOf, traces, vethOf } from "./testing.ts";

// From STATUS to GC.

let lab: Lab;
afterEach(() => lab?.close());

const verb = (name: string, { conf, ns, id, ifName }: Attached, more: object = {}) =>
  lab.node.ok(name, { ...conf, ...more }, { netns: ns, id, ifName });
const failing = (name: string, { conf, ns, id, ifName }: Attached, more: object = {}) =>
  lab.node.error(name, { ...conf, ...more }, { netns: ns, id, ifName });

/** The programs that a call starts, under strace; the plugin itself is the first. */
async function startedBy(
  name: string,
  { conf, ns, id, ifName }: Attached,
  more: object = {},
): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "tscni-portmap-"));
  try {
    const log = join(folder, "log");
    const [tool = "", ...plugin] = lab.node.command("portmap");
    const { status, stdout } = await runPlugin({
      bin: Bun.which("strace")!,
      args: ["-f", "-qq", "-e", "trace=execve", "-o", log, Bun.which(tool) ?? tool, ...plugin],
      env: envOf(name, { netns: ns, id, ifName }),
      stdin: { ...conf, ...more },
    });
    expect(status, stdout).toBe(0);
    return [...readFileSync(log, "utf8").matchAll(/execve\("([^"]+)".*= 0$/gm)]
      .map(([, path]) => path!.split("/").at(-1)!)
      .slice(2);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe.each(backends)("with %s", (backend) => {
  beforeEach(() => {
    lab = makeLab(backend);
  });

  describe("DEL removes everything", () => {
    const dual = [port(8080), port(5353, 53, { protocol: "udp" }), port(8081, 80, { hostIP: "192.0.2.1" })];
    let c: Attached;
    beforeEach(async () => {
      c = await lab.publish(dual);
      expect(traces(lab.node)).not.toEqual([]);
    });
    afterEach(() => expect([traces(lab.node), recordsOf(lab.networkName())]).toEqual([[], []]));

    test("without a namespace, a result, ports, and after the link is gone", async () => {
      await lab.disconnect(c);
      const { prevResult: _, runtimeConfig: __, ...bare } = c.conf;
      await lab.node.ok("DEL", bare as typeof c.conf, { netns: undefined, id: c.id });
    });

    test("with a config that has become wrong, of the other backend, or of other conditions", async () => {
      await verb("DEL", c, {
        backend: backend === "iptables" ? "nftables" : "iptables",
        conditionsV4: ["a; b"],
        markMasqBit: 99,
        runtimeConfig: { portMappings: [port(0)] },
      });
    });

    test("by the rules themselves where the record is lost", async () => {
      rmSync(`/run/tscni/portmap/${lab.networkName()}`, { recursive: true });
      await verb("DEL", c);
    });

    test("after the rules were flushed", async () => {
      if (backend === "iptables")
        for (const tool of ["iptables", "ip6tables"]) lab.node.host.run(tool, "-t", "nat", "-F");
      else lab.node.host.run("nft", "flush", "ruleset");
      await verb("DEL", c);
      await verb("DEL", c);
    });

    test("what is left of them", async () => {
      if (backend === "iptables") {
        const rule = traces(lab.node).find((line) => line.includes("-A CNI-HOSTPORT-DNAT"))!;
        lab.node.host.run("sh", "-c", `iptables -t nat -D ${rule.slice(rule.indexOf("CNI-HOSTPORT"))}`);
      } else lab.node.host.run("nft", "delete element inet tscni_portmap any4 { tcp . 8080 }");
      await verb("DEL", c);
    });
  });

  test("a DEL of others' containers, and of none, touches nothing", async () => {
    const c = await lab.publish([port(8080)]);
    const before = traces(lab.node);
    for (const more of [{ id: "c2" }, { ifName: "eth1" }])
      await lab.node.ok("DEL", c.conf, { netns: c.ns, ...(more.id ? more : { id: "c1", ...more }) });
    await lab.node.ok("DEL", { ...c.conf, name: lab.networkName(1) }, { netns: c.ns, id: "c1" });
    expect(traces(lab.node)).toEqual(before);
  });

  test("nothing asked: ADD, CHECK and DEL start no process; with ports, as few as can be", async () => {
    const none = await lab.connect({ id: "c0" });
    for (const name of ["ADD", "CHECK", "DEL"]) expect(await startedBy(name, none), name).toEqual([]);
    const { runtimeConfig: _, prevResult, ...bare } = none.conf;
    expect(await startedBy("DEL", { ...none, conf: bare as typeof none.conf })).toEqual([]);
    const c = await lab.connect({ id: "c1" }, [port(8080), port(8081)]);
    const [read, write] = [
      ["iptables-save", "ip6tables-save"],
      ["iptables-restore", "ip6tables-restore"],
    ];
    expect(await startedBy("ADD", c)).toEqual(backend === "iptables" ? [...read, ...write] : ["nft"]);
    expect(await startedBy("DEL", c)).toEqual(backend === "iptables" ? write : ["nft"]);
    expect(await startedBy("DEL", c)).toEqual([]);
    expect(prevResult).toBeDefined();
  });

  describe("CHECK says what is missing, and repair puts it back", () => {
    let c: Attached;
    let beside: Attached;
    beforeEach(async () => {
      beside = await lab.publish([port(9090)], { id: "c0" });
      c = await lab.publish([port(8080), port(8081, 80, { hostIP: "192.0.2.1" })]);
      lab.serve(c, "tcp4", 80);
    });
    afterEach(async () => {
      await verb("CHECK", c, { "tscni/repair": true });
      await verb("CHECK", c);
      for (const number of [8080, 8081])
        expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", number)).toBe("c1 192.0.2.2");
      expect(lab.ask(lab.node.host, "tcp4", "127.0.0.1", 8080)).toMatch(/^c1 /);
      await verb("CHECK", beside, { "tscni/repair": true });
      for (const each of [c, beside]) await verb("DEL", each);
      expect(traces(lab.node)).toEqual([]);
    });

    const loss: [what: string, command: Record<string, string>, message: Record<string, RegExp>][] = [
      [
        "everything",
        { iptables: "iptables -t nat -F; ip6tables -t nat -F", nftables: "nft flush ruleset" },
        {
          iptables: /^a rule is missing from the table nat of iptables; -A PREROUTING /,
          nftables: /^the chain hostports is missing from the table inet tscni_portmap of nftables/,
        },
      ],
      [
        "the rules alone",
        { iptables: "iptables -t nat -F CNI-HOSTPORT-DNAT", nftables: "nft flush table inet tscni_portmap" },
        { iptables: /-A CNI-HOSTPORT-DNAT .*808[01]/, nftables: /^a rule of hostports is missing/ },
      ],
      [
        "IPv6",
        {
          iptables: "ip6tables -t nat -F PREROUTING",
          nftables: "nft delete element inet tscni_portmap any6 { tcp . 8080 }",
        },
        { iptables: /of ip6tables; -A PREROUTING/, nftables: /^host port 8080\/tcp is missing/ },
      ],
      [
        "masquerading",
        {
          iptables: "iptables -t nat -F CNI-HOSTPORT-SETMARK",
          nftables: "nft flush map inet tscni_portmap masq4",
        },
        { iptables: /-A CNI-HOSTPORT-SETMARK/, nftables: /^masquerading to 10\.88\.0\.3 is missing/ },
      ],
      [
        "the sysctl",
        {
          iptables: "sysctl -qw net.ipv4.conf.brpm0.route_localnet=0",
          nftables: "sysctl -qw net.ipv4.conf.brpm0.route_localnet=0",
        },
        { iptables: /route_localnet is off/, nftables: /route_localnet is off/ },
      ],
    ];
    test.each(loss)("%s", async (_, command, message) => {
      await verb("CHECK", c);
      lab.node.host.run("sh", "-c", command[backend]!);
      const { msg, details } = await failing("CHECK", c);
      expect(details ? `${msg}; ${details}` : msg).toMatch(message[backend]!);
    });

    test("nothing: repair changes nothing", async () => {
      const all = () =>
        backend === "iptables"
          ? lab.node.host
              .run("sh", "-c", "iptables-save -t nat; ip6tables-save -t nat")
              .replace(/^[#:].*$/gm, "")
          : lab.node.host.run("nft", "-a", "list", "ruleset");
      const before = all();
      await verb("CHECK", c, { "tscni/repair": true });
      expect(all()).toBe(before);
    });
  });

  test("the next ADD finds shared rules that were flushed, and makes none twice", async () => {
    const first = await lab.publish([port(8080)]);
    const count = () =>
      backend === "iptables"
        ? lab.node.host
            .run("iptables-save", "-t", "nat")
            .match(/-A (PREROUTING|OUTPUT|POSTROUTING|CNI-HOSTPORT-(SETMARK|MASQ)) /g)!.length
        : lab.node.host
            .run("nft", "list", "table", "inet", "tscni_portmap")
            .match(/^\t\t(dnat|meta|ct|ip) /gm)!.length;
    const before = count();
    await lab.publish([port(8081)], { id: "c2" });
    expect(count()).toBe(before);
    if (backend === "iptables") lab.node.host.run("iptables", "-t", "nat", "-F");
    else lab.node.host.run("nft", "flush", "table", "inet", "tscni_portmap");
    const third = await lab.publish([port(8082)], { id: "c3" });
    expect(count()).toBe(before);
    lab.serve(third, "tcp4", 80);
    expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8082)).toMatch(/^c3 /);
    await verb("CHECK", first, { "tscni/repair": true });
    expect(count()).toBe(before);
  });

  test("GC removes what is not in its list, and says what", async () => {
    const containers: Attached[] = [];
    for (let i = 0; i < 5; i++)
      containers.push(await lab.publish([port(7000 + i), port(7100 + i)], { id: `g${i}` }));
    const other = await lab.publish([port(7777)], { id: "g9", network: 1 });
    const gc = async (name: string, keep: string[] | undefined) => {
      const { conf } = containers[0]!;
      const { status, stdout, stderr } = await lab.node.call(
        "GC",
        {
          cniVersion: "1.1.0",
          name,
          type: "portmap",
          backend: conf.backend,
          ...(keep && {
            "cni.dev/valid-attachments": keep.map((id) => ({ containerID: id, ifname: "eth0" })),
          }),
        },
        { id: undefined as unknown as string },
      );
      expect([status, stdout]).toEqual([0, ""]);
      return stderr;
    };
    const before = traces(lab.node);
    expect(await gc(lab.networkName(), undefined)).toBe("");
    expect(traces(lab.node)).toEqual(before);
    const said = await gc(lab.networkName(), ["g1", "g3"]);
    expect(said.match(/gc: removed/g)).toHaveLength(backend === "iptables" ? 6 : 3);
    for (const [i, each] of containers.entries())
      if (i % 2 === 1) await verb("CHECK", each);
      else await failing("CHECK", each);
    await verb("CHECK", other);
    expect(recordsOf(lab.networkName())).toEqual(["g1:eth0", "g3:eth0"]);
    rmSync(`/run/tscni/portmap/${lab.networkName()}`, { recursive: true }); // and where records are lost
    await gc(lab.networkName(), []);
    await verb("CHECK", other);
    await gc(lab.networkName(1), []);
    expect(traces(lab.node)).toEqual([]);
    expect(await gc(lab.networkName(1), [])).toBe("");
  });

  test("many that are deleted together go in one transaction", async () => {
    const containers = [];
    for (let i = 0; i < 4; i++) containers.push(await lab.publish([port(7000 + i)], { id: `b${i}` }));
    const kept = await lab.publish([port(7999)], { id: "kept" });
    const [first, ...rest] = containers;
    const next = rest.map(({ id, ifName }) => ({ containerID: id, ifname: ifName }));
    const started = await startedBy("DEL", first!, { "tscni/deleted-next": next });
    expect(started).toHaveLength(backend === "iptables" ? 6 : 2);
    expect(recordsOf(lab.networkName())).toEqual(["kept:eth0"]);
    for (const each of rest) expect(await startedBy("DEL", each)).toEqual([]);
    await verb("CHECK", kept);
    await verb("DEL", kept);
    expect(traces(lab.node)).toEqual([]);
  });

  test("STATUS is content", async () => {
    const { conf } = await lab.connect();
    await lab.node.ok("STATUS", { ...conf, prevResult: undefined, runtimeConfig: undefined });
    const { backend: _, ...auto } = conf;
    await lab.node.ok("STATUS", auto as typeof conf);
  });

  test("conditions hold for the ports of their network", async () => {
    const conditionsV4 =
      backend === "iptables" ? ["!", "-s", "192.0.2.2/32"] : ["ip", "saddr", "!=", "192.0.2.2"];
    const conditionsV6 =
      backend === "iptables"
        ? ["-i", "up0", "-m", "comment", "--comment", '; $x #"']
        : ['iifname { "up0", "up1" }'];
    const own = { conditionsV4, conditionsV6 };
    const c = await lab.publish([port(8080)], { own });
    const free = await lab.publish([port(8081)], { id: "c2", network: 1 });
    for (const each of [c, free]) for (const kind of ["tcp4", "tcp6"]) lab.serve(each, kind, 80);
    expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8080)).toBeUndefined();
    expect(lab.ask(lab.node.host, "tcp4", "192.0.2.1", 8080)).toMatch(/^c1 /);
    expect(lab.ask(lab.outside, "tcp6", "fd02::1", 8080)).toMatch(/^c1 /);
    expect(lab.ask(lab.node.host, "tcp6", "fd02::1", 8080)).toBeUndefined();
    expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8081)).toMatch(/^c2 /);
    await verb("CHECK", c);
    for (const each of [c, free]) await verb("DEL", each);
    expect(traces(lab.node)).toEqual([]);
  });

  test("UDP connections of before ADD, and of after DEL, are forgotten; others are not", async () => {
    const { host } = lab.node;
    const { outside } = lab;
    const client = (from: string, to: string, number: number, kind = "UDP") =>
      outside.run(
        "sh",
        "-c",
        `echo x | timeout 1 socat -u - ${kind}:${to}:${number},sourceport=${from} 2>&1 || true`,
      );
    const tracked = () =>
      host
        .run("sh", "-c", "conntrack -L -p udp 2>/dev/null")
        .split("\n")
        .filter((line) => line.includes("dport=5353"))
        .map((line) => line.match(/sport=(\d+)/)![1])
        .toSorted();
    // Nothing of netfilter is loaded in this namespace yet; a rule that needs it makes the kernel track.
    host.run(
      "iptables",
      "-t",
      "nat",
      "-A",
      "POSTROUTING",
      "-m",
      "conntrack",
      "--ctstate",
      "INVALID",
      "-j",
      "ACCEPT",
    );
    client("4001", "192.0.2.1", 5353);
    const far = await lab.connect({ id: "far" });
    client("4002", far.addresses[4], 5353);
    expect(tracked()).toEqual(["4001", "4002"]);
    const c = await lab.publish([port(5353, 53, { protocol: "udp" })]);
    expect(tracked()).toEqual(["4002"]);
    lab.serve(c, "udp4", 53);
    client("4001", "192.0.2.1", 5353);
    expect(tracked()).toEqual(["4001", "4002"]);
    expect(host.run("conntrack", "-L", "-p", "udp", "--src-nat", "--dst-nat").length).toBeGreaterThanOrEqual(
      0,
    );
    await verb("DEL", c);
    expect(tracked()).toEqual(["4002"]);
  });
});

describe("the choice of the backend", () => {
  test("nobody chooses: iptables", async () => {
    lab = makeLab("iptables", { backend: undefined });
    const c = await lab.publish([port(8080)]);
    expect(traces(lab.node).join()).toContain("iptables-save -A CNI-HOSTPORT-DNAT");
    await verb("CHECK", c);
    await verb("DEL", c);
    expect(traces(lab.node)).toEqual([]);
  });

  test("conditions of the other backend are refused before anything is done", async () => {
    lab = makeLab("iptables", { backend: undefined });
    const c = await lab.connect({ own: { conditionsV4: ["ip saddr 10.0.0.1"] } }, [port(8080)]);
    expect(await failing("ADD", c)).toMatchObject({
      code: 7,
      msg: "iptables backend was requested but configuration contains nftables-specific options [conditionsV4]",
    });
    expect(traces(lab.node)).toEqual([]);
  });

  test("an external chain marks, with iptables", async () => {
    lab = makeLab("iptables", { externalSetMarkChain: "MY-MARK" });
    const { host } = lab.node;
    host.run(
      "sh",
      "-c",
      "for t in iptables ip6tables; do $t -t nat -N MY-MARK; $t -t nat -A MY-MARK -j MARK --set-xmark 0x10/0x10; $t -t nat -A POSTROUTING -m mark --mark 0x10/0x10 -j MASQUERADE; done",
    );
    const c = await lab.publish([port(8080)]);
    expect(traces(lab.node).join()).toContain("-j MY-MARK");
    expect(host.run("iptables-save", "-t", "nat")).not.toContain("CNI-HOSTPORT-SETMARK");
    lab.serve(c, "tcp4", 80);
    expect(lab.ask(host, "tcp4", "127.0.0.1", 8080)).toMatch(/^c1 /);
    await verb("CHECK", c);
    await verb("DEL", c);
    expect(host.run("iptables-save", "-t", "nat")).toContain("-A MY-MARK");
  });

  test("markMasqBit", async () => {
    lab = makeLab("iptables", { markMasqBit: 31 });
    const c = await lab.publish([port(8080)]);
    expect(lab.node.host.run("iptables-save", "-t", "nat")).toContain("--set-xmark 0x80000000/0x80000000");
    lab.serve(c, "tcp4", 80);
    expect(lab.ask(lab.node.host, "tcp4", "127.0.0.1", 8080)).toMatch(/^c1 /);
    await verb("CHECK", c);
    await verb("DEL", c);
    expect(vethOf(lab.node, c)).toMatch(/^veth/);
  });
});
