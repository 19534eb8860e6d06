import { ip, makeNode, makeRouter, type TestNamespace, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
beforeEach(() => {
  node = makeNode();
});
afterEach(() => node.close());

const macOf = (ns: TestNamespace): string => ip(ns, "link", "show", "dev", "eth0")[0].address;

describe("a reused address", () => {
  const neighbourOf = (ns: TestNamespace, address: string, dev: string) =>
    ip(ns, "neigh", "show", "to", address, "dev", dev)[0]?.lladdr;

  test("works at once for those who remember its last owner", async () => {
    const conf = node.bridgeConf({ isGateway: true });
    const [first, neighbour, second] = [node.container(), node.container(), node.container()];
    const addresses = ["10.88.0.20", "fd88::20"];
    const asked = { ...conf, runtimeConfig: { ips: addresses } };
    await node.ok("ADD", asked, { netns: first });
    await node.ok("ADD", conf, { netns: neighbour, id: "neighbour" });
    const watchers = [
      { ns: neighbour, dev: "eth0" },
      { ns: node.host, dev: "brtest" },
    ];
    for (const address of addresses)
      for (const { ns, dev } of watchers) {
        ns.run("ping", "-c1", "-W1", address);
        expect(neighbourOf(ns, address, dev)).toBe(macOf(first));
      }

    const old = macOf(first);
    await node.ok("DEL", asked, { netns: first });
    await node.ok("ADD", asked, { netns: second, id: "c2" });
    expect(macOf(second)).not.toBe(old);
    for (const address of addresses)
      for (const { ns, dev } of watchers) {
        expect(neighbourOf(ns, address, dev), `${address} as ${dev} sees it`).toBe(macOf(second));
        ns.run("ping", "-c1", "-W1", address);
      }
  });
});

describe("router advertisements from another port", () => {
  const offered = "2001:db8:77:";
  /** Keeps advertising while the work goes on and a moment longer. */
  async function whileAdvertising(work: () => Promise<unknown>): Promise<void> {
    const ns = node.container();
    await node.ok("ADD", node.bridgeConf({}, []), { netns: ns, id: "router" });
    const router = makeRouter(ns, "eth0");
    const timer = setInterval(() => router.advertise(), 1);
    try {
      await work();
      await Bun.sleep(50);
    } finally {
      clearInterval(timer);
      router.close();
    }
  }

  test("are taken by a container of layer 2, left to itself", async () => {
    const c = node.container();
    await whileAdvertising(() => node.ok("ADD", node.bridgeConf({}, []), { netns: c }));
    expect(c.run("ip", "-6", "addr", "show", "dev", "eth0")).toContain(offered);
    expect(ip(c, "-6", "route", "show", "default")).toMatchObject([{ gateway: "fe80::77", protocol: "ra" }]);
  });

  test.each([["10.88.0.0/24"], ["fd88::/64"]])(
    "are refused by one with addresses of %s, and by the bridge",
    async (subnet) => {
      const c = node.container();
      const conf = node.bridgeConf({ isGateway: true }, [subnet]);
      await whileAdvertising(() => node.ok("ADD", conf, { netns: c }));
      for (const [ns, dev] of [
        [c, "eth0"],
        [node.host, "brtest"],
      ] as const) {
        expect(ns.run("ip", "-6", "addr", "show", "dev", dev)).not.toContain(offered);
        expect(ip(ns, "-6", "route", "show", "default")).toEqual([]);
      }
    },
  );
});
