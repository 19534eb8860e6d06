import { dirname } from "node:path";
import { goBin } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type Attached,
  backends,
  type Lab,
  makeLab,
  port,
  recordsOf,
  traces,
} from "../../plugins/meta/portmap/testing.ts";

let lab: Lab;
/** The folder of the Go plugins. */
let go: string;
beforeEach((test) => {
  go = dirname(goBin("portmap", test));
});
afterEach(() => lab?.close());

const verb = (name: string, { conf, ns, id, ifName }: Attached, bin?: string) =>
  lab.node.ok(name, conf, { netns: ns, id, ifName, ...(bin ? { bin } : {}) });
const nothing = () => expect([traces(lab.node), recordsOf(lab.networkName())]).toEqual([[], []]);

const udp = { protocol: "udp" };
const many = Array.from({ length: 33 }, (_, i) => port(9000 + i));
const cases: [name: string, ports: object[], own?: { iptables?: object; nftables?: object }][] = [
  ["two ports", [port(8080), port(8081, 81)]],
  ["all protocols", [port(8080), port(8080, 80, udp), port(8080, 80, { protocol: "sctp" })]],
  ["one address", [port(8080, 80, { hostIP: "192.0.2.1" }), port(8081, 80, { hostIP: "fd02::1" })]],
  ["one address and all", [port(8080, 80, { hostIP: "192.0.2.1" }), port(8081), port(8082)]],
  ["all of a family", [port(8080, 80, { hostIP: "0.0.0.0" }), port(8081, 80, { hostIP: "::" })]],
  ["33 ports", many],
  ["masqAll", [port(8080)], { iptables: { masqAll: true } }],
  ["no snat", [port(8080)], { iptables: { snat: false }, nftables: { snat: false } }],
  ["another bit", [port(8080)], { iptables: { markMasqBit: 7 } }],
  [
    "conditions",
    [port(8080)],
    {
      iptables: { conditionsV4: ["!", "-s", "198.51.100.0/24"], conditionsV6: ["-i", "up0"] },
      nftables: { conditionsV4: ["ip saddr != 198.51.100.0/24"] },
    },
  ],
];

describe.each(backends)("with %s", (backend) => {
  const mine = cases.filter(([, , own]) => own === undefined || own[backend]);

  describe.each(mine)("%s", (_, ports, own) => {
    beforeEach(() => {
      lab = makeLab(backend, own?.[backend]);
    });

    test("what Go adds we CHECK and DEL, and nothing is left", async () => {
      const c = await lab.publish(ports, { bin: go });
      expect(traces(lab.node)).not.toEqual([]);
      await verb("CHECK", c);
      await verb("DEL", c);
      nothing();
    });

    test("what Go adds we DEL without being told of ports or result", async () => {
      const c = await lab.publish(ports, { bin: go });
      const { runtimeConfig: _, prevResult: __, ...bare } = c.conf;
      await lab.node.ok("DEL", bare as typeof c.conf, { netns: undefined, id: c.id });
      nothing();
    });

    if (backend === "iptables")
      test("what we add Go CHECKs and DELs, and no rule is left", async () => {
        const c = await lab.publish(ports);
        await verb("CHECK", c, go);
        await verb("DEL", c, go);
        expect(traces(lab.node)).toEqual([]);
        await verb("DEL", c);
        nothing();
      });

    if (backend === "iptables")
      test("both make the same rules", async () => {
        const saved = () =>
          lab.node.host
            .run("sh", "-c", "iptables-save -t nat; ip6tables-save -t nat")
            .split("\n")
            .filter((line) => line.startsWith("-A "))
            .toSorted();
        const c = await lab.publish(ports, { bin: go });
        const theirs = saved();
        await verb("DEL", c, go);
        lab.node.host.run(
          "sh",
          "-c",
          "iptables -t nat -F; iptables -t nat -X; ip6tables -t nat -F; ip6tables -t nat -X",
        );
        await verb("ADD", c);
        // A family that no port is of has no rules of ours; and one more rule stands in front where both kinds are mixed.
        const ours = saved();
        const missing = theirs.filter((line) => !ours.includes(line));
        const more = ours.filter((line) => !theirs.includes(line));
        expect([missing, more.filter((line) => !line.startsWith("-A CNI-HOSTPORT-DNAT "))]).toEqual([[], []]);
        expect(more.length).toBeLessThanOrEqual(_ === "one address and all" ? 1 : 0);
      });
  });

  test("a port that Go's container has is not ours to give", async () => {
    lab = makeLab(backend);
    const theirs = await lab.publish([port(8080)], { bin: go });
    const second = await lab.connect({ id: "c2" }, [port(8080)]);
    const before = traces(lab.node);
    const { msg } = await lab.node.error("ADD", second.conf, { netns: second.ns, id: "c2" });
    expect(msg).toMatch(/^host port 8080\/tcp is taken by container c1/);
    expect(traces(lab.node)).toEqual(before);
    await verb("DEL", theirs);
    await verb("ADD", second);
    await verb("CHECK", second);
    await verb("DEL", second);
    nothing();
  });

  test("Go's and our containers side by side, each deleted by the other", async () => {
    lab = makeLab(backend);
    const theirs = await lab.publish([port(8080)], { bin: go });
    const ours = await lab.publish([port(8081)], { id: "c2" });
    for (const c of [theirs, ours]) lab.serve(c, "tcp4", 80);
    expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8080)).toBe("c1 192.0.2.2");
    expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8081)).toBe("c2 192.0.2.2");
    await verb("DEL", theirs);
    expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8080)).toBeUndefined();
    expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8081)).toBe("c2 192.0.2.2");
    await verb("CHECK", ours);
    await verb("DEL", ours, backend === "iptables" ? go : undefined);
    expect(traces(lab.node)).toEqual([]);
  });

  test("what Go made and others flushed, repair puts back as ours", async () => {
    lab = makeLab(backend);
    const c = await lab.publish([port(8080)], { bin: go });
    if (backend === "iptables") lab.node.host.run("sh", "-c", "iptables -t nat -F; ip6tables -t nat -F");
    else lab.node.host.run("nft", "flush", "ruleset");
    await lab.node.ok("CHECK", { ...c.conf, "tscni/repair": true }, { netns: c.ns });
    lab.serve(c, "tcp4", 80);
    expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8080)).toBe("c1 192.0.2.2");
    await verb("DEL", c);
    nothing();
  });

  if (backend === "iptables")
    test("GC removes what Go left behind", async () => {
      lab = makeLab(backend);
      const [gone, kept] = [
        await lab.publish([port(8080)], { bin: go }),
        await lab.publish([port(8081)], { id: "c2", bin: go }),
      ];
      const { stderr, status } = await lab.node.call("GC", {
        cniVersion: "1.1.0",
        name: lab.networkName(),
        type: "portmap",
        backend,
        "cni.dev/valid-attachments": [{ containerID: "c2", ifname: "eth0" }],
      });
      expect([status, stderr.match(/gc: removed/g)?.length]).toEqual([0, 2]);
      await verb("CHECK", kept, go);
      await expect(verb("CHECK", gone, go)).rejects.toThrow();
    });
});
