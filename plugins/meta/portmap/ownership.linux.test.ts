import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Attached, backends, type Lab, makeLab, port, recordsOf, traces, vethOf } from "./testing.ts";

// Whose a host port is.

let lab: Lab;
afterEach(() => lab?.close());

const add = (attached: Attached, bin?: string) =>
  lab.node.call("ADD", attached.conf, {
    netns: attached.ns,
    id: attached.id,
    ifName: attached.ifName,
    ...(bin ? { bin } : {}),
  });
const verb = (name: string, { conf, ns, id, ifName }: Attached, more: object = {}) =>
  lab.node.ok(name, { ...conf, ...more }, { netns: ns, id, ifName });

describe.each(backends)("with %s", (backend) => {
  beforeEach(() => {
    lab = makeLab(backend);
  });

  describe("two containers that ask for the same port", () => {
    test("the second ADD fails and names the first, which keeps it; nothing of the second stays", async () => {
      const first = await lab.publish([port(8080), port(53, 53, { protocol: "udp" })]);
      const before = traces(lab.node);
      const second = await lab.connect({ id: "c2" }, [port(9090), port(8080, 81)]);
      const { json, status } = await add(second);
      expect(status).toBe(1);
      expect(json.msg).toBe(
        `host port 8080/tcp is taken by container c1 (eth0 on network ${lab.networkName()})`,
      );
      expect(traces(lab.node)).toEqual(before);
      expect(recordsOf(lab.networkName())).toEqual(["c1:eth0"]);
      lab.serve(first, "tcp4", 80);
      expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8080)).toBe("c1 192.0.2.2");
      await verb("CHECK", first);
      await verb("DEL", second);
      expect(traces(lab.node)).toEqual(before);
    });

    test.each([
      ["all addresses", "", ""],
      ["one address", "192.0.2.1", "192.0.2.1"],
      ["one IPv6 address", "fd02::1", "fd02:0:0::1"],
      ["all of a family, beside all", "0.0.0.0", ""],
    ])("%s: refused", async (_, one, two) => {
      await lab.publish([port(8080, 80, { hostIP: one })]);
      const second = await lab.connect({ id: "c2" }, [port(8080, 80, { hostIP: two })]);
      expect((await add(second)).json.msg).toMatch(/^host port .*8080\/tcp is taken by container c1 /);
    });

    test("protocols and addresses tell them apart", async () => {
      const first = await lab.publish([port(8080, 80, { hostIP: "192.0.2.1" }), port(8081)]);
      const second = await lab.publish(
        [port(8080, 80, { hostIP: "10.88.0.1" }), port(8081, 81, { protocol: "udp" })],
        { id: "c2" },
      );
      for (const c of [first, second]) lab.serve(c, "tcp4", 80);
      lab.serve(second, "udp4", 81);
      expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8080)).toMatch(/^c1 /);
      expect(lab.ask(lab.node.host, "tcp4", "10.88.0.1", 8080)).toMatch(/^c2 /);
      expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8081)).toMatch(/^c1 /);
      expect(lab.ask(lab.outside, "udp4", "192.0.2.1", 8081)).toMatch(/^c2 /);
      for (const c of [first, second]) await verb("CHECK", c);
      await verb("DEL", first);
      expect(lab.ask(lab.node.host, "tcp4", "10.88.0.1", 8080)).toMatch(/^c2 /);
      await verb("CHECK", second);
      await verb("DEL", second);
      expect(traces(lab.node)).toEqual([]);
    });

    test.each([true, false])(
      "the exact address wins over all, in either order (exact first: %s)",
      async (early) => {
        const exact = [port(8080, 80, { hostIP: "192.0.2.1" })];
        const wide = [port(8080)];
        const first = await lab.publish(early ? exact : wide);
        const second = await lab.publish(early ? wide : exact, { id: "c2" });
        for (const c of [first, second]) lab.serve(c, "tcp4", 80);
        const [narrow, other] = early ? ["c1", "c2"] : ["c2", "c1"];
        expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8080)?.slice(0, 2)).toBe(narrow);
        expect(lab.ask(lab.node.host, "tcp4", "10.88.0.1", 8080)?.slice(0, 2)).toBe(other);
        for (const c of [first, second]) await verb("CHECK", c);
      },
    );

    test("one container with both kinds of port, beside others with the other kind", async () => {
      const mixed = await lab.publish([port(8080), port(8081, 80, { hostIP: "192.0.2.1" })]);
      const second = await lab.publish([port(8080, 80, { hostIP: "192.0.2.1" }), port(8081)], { id: "c2" });
      for (const c of [mixed, second]) lab.serve(c, "tcp4", 80);
      const owner = (address: string, number: number) =>
        lab.ask(lab.node.host, "tcp4", address, number)?.slice(0, 2);
      expect([owner("192.0.2.1", 8080), owner("192.0.2.1", 8081)]).toEqual(["c2", "c1"]);
      expect([owner("10.88.0.1", 8080), owner("10.88.0.1", 8081)]).toEqual(["c1", "c2"]);
      for (const c of [mixed, second]) {
        await verb("CHECK", c);
        await verb("DEL", c);
      }
      expect(traces(lab.node)).toEqual([]);
    });
  });

  describe("a container that is gone", () => {
    test("gives way to the next that asks, and its late DEL takes nothing from it", async () => {
      const dead = await lab.publish([port(8080), port(8081)]);
      lab.node.host.run("ip", "link", "del", vethOf(lab.node, dead));
      const next = await lab.connect({ id: "c2" }, [port(8080)]);
      const { status, stderr } = await add(next);
      expect(status).toBe(0);
      expect(stderr).toContain("container c1 (eth0 on network");
      expect(recordsOf(lab.networkName())).toEqual(["c2:eth0"]);
      expect(traces(lab.node).filter((line) => /8081| c1 |"c1/.test(line))).toEqual([]);
      lab.serve(next, "tcp4", 80);
      for (let i = 0; i < 2; i++) {
        expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8080)).toBe("c2 192.0.2.2");
        await verb("CHECK", next);
        await verb("DEL", dead);
      }
      await verb("DEL", next);
      expect(traces(lab.node)).toEqual([]);
    });

    test("whose address is the next one's again", async () => {
      const dead = await lab.publish([port(8080)]);
      lab.node.host.run("ip", "link", "del", vethOf(lab.node, dead));
      lab.node.resetLeases();
      const next = await lab.connect({ id: "c2" }, [port(8080), port(8081)]);
      expect(next.addresses).toEqual(dead.addresses);
      expect((await add(next)).status).toBe(0);
      await verb("DEL", dead);
      await verb("CHECK", next);
      lab.serve(next, "tcp4", 80);
      expect(lab.ask(lab.node.host, "tcp4", "127.0.0.1", 8080)).toMatch(/^c2 /);
    });

    test("lives in doubt: with a record that can't be read, its ports stay its own", async () => {
      const first = await lab.publish([port(8080)]);
      const path = `/run/tscni/portmap/${lab.networkName()}/c1:eth0`;
      expect(JSON.parse(readFileSync(path, "utf8")).data.hostInterfaces).toContain(vethOf(lab.node, first));
      lab.node.host.run("sh", "-c", `echo broken > '${path}'`);
      lab.node.host.run("ip", "link", "del", vethOf(lab.node, first));
      const second = await lab.connect({ id: "c2" }, [port(8080)]);
      const { json } = await add(second);
      expect(json.msg).toMatch(/^host port 8080\/tcp is taken by .*c1/);
      await verb("DEL", first, { prevResult: undefined });
      expect((await add(second)).status).toBe(0);
    });
  });

  test("a second ADD of the same attachment replaces its ports", async () => {
    const c = await lab.publish([port(8080), port(8081)]);
    c.conf.runtimeConfig = { portMappings: [port(8081, 81), port(8082)] };
    expect((await add(c)).status).toBe(0);
    lab.serve(c, "tcp4", 80);
    lab.serve(c, "tcp4", 81);
    const open = [8080, 8081, 8082].map((n) => lab.ask(lab.outside, "tcp4", "192.0.2.1", n));
    expect(open).toEqual([undefined, "c1 192.0.2.2", "c1 192.0.2.2"]);
    await verb("CHECK", c);
    c.conf.runtimeConfig = { portMappings: [] };
    expect((await add(c)).status).toBe(0);
    expect(traces(lab.node)).toEqual([]);
  });

  test("two interfaces of a container on one network have their ports each", async () => {
    const one = await lab.publish([port(8080)]);
    const two = await lab.publish([port(8081)], { ns: one.ns, ifName: "eth1" });
    lab.serve(one, "tcp4", 80);
    const open = () => [8080, 8081].map((n) => lab.ask(lab.outside, "tcp4", "192.0.2.1", n) !== undefined);
    expect(open()).toEqual([true, true]);
    for (const c of [one, two]) await verb("CHECK", c);
    await verb("DEL", one);
    expect(open()).toEqual([false, true]);
    await verb("CHECK", two);
    await verb("DEL", two);
    expect(traces(lab.node)).toEqual([]);
  });

  test.each([
    ["on one network", { ifName: "eth1" }],
    ["on two networks, as Podman attaches them", { ifName: "eth1", network: 1 }],
  ])("the same port by two interfaces of one container, %s", async (_, second) => {
    const one = await lab.publish([port(8080)]);
    const two = await lab.publish([port(8080)], { ...second, ns: one.ns });
    lab.serve(one, "tcp4", 80);
    expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8080)).toMatch(/^c1 /);
    for (const c of [one, two]) await verb("CHECK", c);
    await lab.remove(one);
    for (const family of ["-4", "-6"])
      one.ns.run(
        "ip",
        family,
        "route",
        "replace",
        "default",
        "via",
        family === "-4"
          ? `10.8${two.conf.name.endsWith("1") ? 9 : 8}.0.1`
          : `fd8${two.conf.name.endsWith("1") ? 9 : 8}::1`,
      );
    await verb("CHECK", two);
    expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8080)).toMatch(/^c1 /);
    await verb("DEL", two);
    expect(traces(lab.node)).toEqual([]);
  });

  test("many at once: each port has one owner, and each other ADD an error", async () => {
    const containers = await Promise.all(
      Array.from({ length: 12 }, (_, i) => lab.connect({ id: `m${i}` }, [port(7000 + (i % 4))])),
    );
    const outcomes = await Promise.all(containers.map((c) => add(c)));
    const winners = containers.filter((_, i) => outcomes[i]!.status === 0);
    expect(winners.map((c) => c.conf.runtimeConfig.portMappings[0].hostPort).toSorted()).toEqual([
      7000, 7001, 7002, 7003,
    ]);
    for (const { status, json } of outcomes)
      if (status !== 0) expect(json.msg).toContain(" is taken by container m");
    for (const c of winners) await verb("CHECK", c);
    expect((await Promise.all(containers.map((c) => verb("DEL", c)))).length).toBe(12);
    expect(traces(lab.node)).toEqual([]);
    expect(
      lab.node.host.run("iptables-save", "-t", "nat").match(/-A PREROUTING.*HOSTPORT/g)?.length ?? 0,
    ).toBe(backend === "iptables" ? 1 : 0);
  });
});
