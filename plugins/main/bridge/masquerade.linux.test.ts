import { existsSync, readdirSync, rmSync } from "node:fs";
import { basename } from "node:path";
import { variantFolder, variants } from "@tscni/iptables/testing";
import {
  type Conf,
  ip,
  makeLan,
  makeNode,
  pings,
  type TestNamespace,
  type TestNode,
} from "@tscni/test-support";
import { batchKey } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
let c: TestNamespace;
const path = process.env.PATH;
beforeEach(() => {
  node = makeNode();
  c = node.container();
});
afterEach(() => {
  node.close();
  process.env.PATH = path;
  forget();
});

const backends = ["iptables", "nftables"] as const;
const dual = ["10.88.0.0/24", "fd88::/64"];
const masq = (ipMasqBackend: string, more: object = {}, subnets = dual): Conf =>
  node.bridgeConf({ name: "masqnet", isDefaultGateway: true, ipMasq: true, ipMasqBackend, ...more }, subnets);

/** Every rule, set and chain there is, but for the tables and hooks that iptables-nft makes and leaves. */
const rules = (): string[] =>
  node.host
    .run("nft", "list", "ruleset")
    .replaceAll(/ counter packets [0-9]+ bytes [0-9]+/g, "")
    .replaceAll(/(daddr != (224|ff00).*) masquerade$/gm, "$1 ") // nft shows iptables' targets at times, at others not
    .split("\n")
    .filter((line) => line.trim() !== "" && line.trim() !== "}")
    .filter(
      (line) =>
        !/^table ip6? nat |^\tchain (PREROUTING|INPUT|OUTPUT|POSTROUTING) |^\t\ttype nat hook/.test(line),
    )
    .filter((line) => !line.startsWith("# Warning"));
/** Networks of this file's own: all tests have one /run. */
const folders = ["masqnet", "masqothers"].map((network) => `/run/tscni/masquerade/${network}`);
const forget = () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
};
const records = (): string[] =>
  folders
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder).map((name) => `${basename(folder)}/${name}`));
const nothingLeft = () =>
  expect([
    rules(),
    records(),
    node.veths().filter((name) => name !== "eth0"),
    node.leases("masqnet"),
  ]).toEqual([[], [], [], []]);

/** Has a namespace remember the sources of the packets that come in. */
function watch(lan: TestNamespace): () => string[] {
  lan.run(
    "nft",
    `add table inet seen
     add set inet seen four { type ipv4_addr; flags dynamic; }
     add set inet seen six { type ipv6_addr; flags dynamic; }
     add chain inet seen in { type filter hook prerouting priority 0; }
     add rule inet seen in meta l4proto { icmp, ipv6-icmp, udp } ip saddr != 0.0.0.0 update @four { ip saddr }
     add rule inet seen in meta l4proto { icmp, ipv6-icmp, udp } ip6 saddr != { ::, fe80::/10 } update @six { ip6 saddr }`,
  );
  return () => {
    const found = ["four", "six"].flatMap((set) => {
      const { nftables } = JSON.parse(lan.run("nft", "-j", "list", "set", "inet", "seen", set));
      return (nftables.find((object: object) => "set" in object).set.elem ?? []) as string[];
    });
    for (const set of ["four", "six"]) lan.run("nft", "flush", "set", "inet", "seen", set);
    return found.sort();
  };
}

/** A lan with the host on it, which knows no way back to the containers. */
function outside(): { lan: TestNamespace; seen: () => string[] } {
  const lan = makeLan(node, "192.0.2.9/24", "2001:db8::9/64");
  node.host.run("ip", "addr", "add", "192.0.2.1/24", "dev", "eth0");
  node.host.run("ip", "addr", "add", "2001:db8::1/64", "dev", "eth0", "nodad");
  return { lan, seen: watch(lan) };
}

describe.each(backends)("%s", (backend) => {
  test("a peer sees the host's address, of both families", async () => {
    const { seen } = outside();
    await node.ok("ADD", masq(backend), { netns: c });
    expect([pings(c, "192.0.2.9"), pings(c, "2001:db8::9")]).toEqual([true, true]);
    expect(seen()).toEqual(["192.0.2.1", "2001:db8::1"]);
    // Without it they don't get there and back: the test would see it.
    const other = node.container();
    await node.ok("ADD", masq(backend, { ipMasq: false }), { netns: other, id: "c2" });
    expect(pings(other, "192.0.2.9")).toBe(false);
    expect(seen()).toEqual(["10.88.0.3"]);
  });

  test("within the subnet and to multicast groups, sources stay as they are", async (test) => {
    if (Bun.which("python3") === null) test.skip("needs python3, for a packet with the container's source");
    const { lan, seen } = outside();
    await node.ok("ADD", masq(backend, {}, ["10.88.0.0/16", "fd88::/64"]), { netns: c });
    // Part of the subnet is behind the host, by way of its routing and so of POSTROUTING.
    lan.run("ip", "addr", "add", "10.88.200.1/24", "dev", "uplink");
    lan.run("ip", "route", "add", "10.88.0.0/16", "via", "192.0.2.1");
    node.host.run("ip", "route", "add", "10.88.200.0/24", "dev", "eth0");
    node.host.run("sysctl", "-q", "net.ipv4.conf.brtest.proxy_arp=1");
    const [{ address }] = ip(node.host, "link", "show", "dev", "brtest");
    c.run("ip", "neigh", "add", "10.88.200.1", "lladdr", address, "dev", "eth0", "nud", "permanent");
    seen();
    expect(pings(c, "10.88.200.1")).toBe(true);
    expect(seen()).toEqual(["10.88.0.2"]);

    const send = (target: string, ...more: string[]) =>
      node.host.run(
        "python3",
        "-c",
        `import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(0, 19, 1)
s.bind(("10.88.0.2", 5000)); ${more.join("; ")}
s.sendto(b"x", ("${target}", 5000))`,
      );
    send("239.1.2.3", 's.setsockopt(0, socket.IP_MULTICAST_IF, socket.inet_aton("192.0.2.1"))');
    expect(seen()).toEqual(["10.88.0.2"]);
    send("192.0.2.9");
    expect(seen()).toEqual(["192.0.2.1"]);
  });

  test("ADD, CHECK, DEL: nothing is left", async () => {
    const conf = masq(backend);
    const prevResult = await node.ok("ADD", conf, { netns: c });
    expect(rules().join("\n")).toMatch(/224\.0\.0\.0.*ff00::/s);
    expect(records()).toEqual(["masqnet/c1:eth0"]);
    await node.ok("CHECK", { ...conf, prevResult }, { netns: c });
    await node.ok("DEL", { ...conf, prevResult }, { netns: c });
    nothingLeft();
  });

  test.each([
    ["without a namespace and a previous result", {}],
    ["with a config that says nothing of it", { ipMasq: undefined, ipMasqBackend: undefined }],
    ["with a config that is wrong", { ipMasq: "perhaps", ipMasqBackend: "ipchains" }],
  ])("DEL %s", async (_, more) => {
    await node.ok("ADD", masq(backend), { netns: c });
    await node.ok("DEL", { ...masq(backend), ...more });
    nothingLeft();
    await node.ok("DEL", { ...masq(backend), ...more });
  });

  test("DEL when our records are gone, too", async () => {
    const conf = masq(backend);
    const prevResult = await node.ok("ADD", conf, { netns: c });
    forget();
    await node.ok("DEL", { ...conf, prevResult });
    nothingLeft();
    await node.ok("ADD", conf, { netns: c });
    forget();
    await node.ok("DEL", conf);
    nothingLeft();
  });

  test("a second interface of the same container keeps its own", async () => {
    const { seen } = outside();
    const [one, two] = [
      masq(backend),
      masq(backend, { ipam: { ...masq(backend).ipam, ranges: [[{ subnet: "10.99.0.0/24" }]] } }),
    ];
    await node.ok("ADD", one, { netns: c, ifName: "eth0" });
    const second = { ...two, bridge: "brtwo" };
    const prevResult = await node.ok("ADD", second, { netns: c, ifName: "eth1" });
    await node.ok("CHECK", { ...second, prevResult }, { netns: c, ifName: "eth1" });
    await node.ok("DEL", one, { netns: c, ifName: "eth0" });
    await node.ok("CHECK", { ...second, prevResult }, { netns: c, ifName: "eth1" });
    expect(pings(c, "192.0.2.9", "-I", "10.99.0.2")).toBe(true);
    expect(seen()).toContain("192.0.2.1");
    expect(rules().join("\n")).not.toMatch(/10\.88\.0\.2\b/);
    await node.ok("DEL", second, { netns: c, ifName: "eth1" });
    expect([rules(), records()]).toEqual([[], []]);
  });

  test("CHECK sees that rules are lost, repair puts them back, DEL does without", async () => {
    const { seen } = outside();
    const conf = masq(backend);
    const prevResult = await node.ok("ADD", conf, { netns: c });
    const whole = rules();
    node.host.run("nft", "flush", "ruleset");
    const error = await node.error("CHECK", { ...conf, prevResult }, { netns: c });
    expect(error.msg).toMatch(/^ipMasq: .*missing/);
    await node.ok("CHECK", { ...conf, prevResult, "tscni/repair": true }, { netns: c });
    expect(rules().sort()).toEqual(whole.sort());
    expect(pings(c, "192.0.2.9")).toBe(true);
    expect(seen()).toEqual(["192.0.2.1"]);
    node.host.run("nft", "flush", "ruleset");
    await node.ok("DEL", { ...conf, prevResult }, { netns: c });
    nothingLeft();
  });

  test("GC removes those that are not in the list, and no other network's", async () => {
    const conf = masq(backend);
    const others: Conf = { ...masq(backend), name: "masqothers", bridge: "brothers" };
    others.ipam = { ...others.ipam, ranges: [[{ subnet: "10.99.0.0/24" }]] };
    const results: object[] = [];
    for (const id of ["a", "b", "c"])
      results.push(await node.ok("ADD", conf, { netns: node.container(), id }));
    const other = { netns: node.container(), id: "a" };
    const otherResult = await node.ok("ADD", others, other);
    const gc = (list: string[]) =>
      node.call("GC", {
        ...conf,
        "cni.dev/valid-attachments": list.map((containerID) => ({ containerID, ifname: "eth0" })),
      });
    const outcome = await gc(["b"]);
    expect(outcome.stderr).toMatch(/gc: removed .*(container |id: )a/);
    expect(records().sort()).toEqual(["masqnet/b:eth0", "masqothers/a:eth0"]);
    expect(rules().join("\n")).not.toMatch(/10\.88\.0\.[24]\b/);
    expect(rules().join("\n")).toMatch(/10\.88\.0\.3/);
    await node.ok("CHECK", { ...others, prevResult: otherResult }, other);
    await gc([]);
    await node.ok("CHECK", { ...others, prevResult: otherResult }, other);
    await node.ok("DEL", others, other);
    expect([rules(), records()]).toEqual([[], []]);
  });

  test("the first of several DELs takes all of their rules, also where some are lost", async () => {
    const places = ["a", "b", "c", "d"].map((id) => ({ netns: node.container(), id }));
    const conf = masq(backend);
    const results: object[] = [];
    for (const place of places) results.push(await node.ok("ADD", conf, place));
    const next = ["b", "c", "nonesuch"].map((containerID) => ({ containerID, ifname: "eth0" }));
    const lose = () => {
      if (backend === "nftables")
        node.host.run("nft", "delete", "element", "inet", "tscni_masquerade", "sources4", "{ 10.88.0.3 }");
      else node.host.run("iptables", "-t", "nat", "-D", "POSTROUTING", "2");
    };
    lose();
    await node.ok("DEL", { ...conf, [batchKey]: next }, places[0]);
    expect(records()).toEqual(["masqnet/d:eth0"]);
    await node.ok("CHECK", { ...conf, prevResult: results[3] }, places[3]);
    expect(rules().join("\n")).not.toMatch(/10\.88\.0\.[234]\b|fd88::[234]\b/);
    for (const place of places.slice(1)) await node.ok("DEL", conf, place);
    nothingLeft();
  });

  test("an address that has a newer owner is left to him", async () => {
    const { seen } = outside();
    const conf = masq(backend);
    await node.ok("ADD", conf, { netns: c, id: "old" });
    // The old one is gone without a DEL, and IPAM has forgotten it.
    node.host.run("ip", "link", "del", node.veths().find((name) => name !== "eth0")!);
    node.resetLeases();
    const next = { netns: node.container(), id: "new" };
    const prevResult = await node.ok("ADD", conf, next);
    expect(JSON.stringify(prevResult)).toContain("10.88.0.2/24");
    await node.ok("DEL", { ...conf, ipam: undefined }, { id: "old" });
    await node.ok("CHECK", { ...conf, prevResult }, next);
    expect(pings(next.netns, "192.0.2.9")).toBe(true);
    expect(seen()).toEqual(["192.0.2.1"]);
    await node.ok("DEL", conf, next);
    nothingLeft();
  });

  test("any number of ranges of both families", async () => {
    for (const count of [1, 2, 5]) {
      const subnets = Array.from({ length: count }, (_, i) => [
        `10.${i + 100}.0.0/24`,
        `fd88:${i + 1}::/64`,
      ]).flat();
      const conf = { ...masq(backend, {}, subnets), isDefaultGateway: false };
      const prevResult = await node.ok("ADD", conf, { netns: c });
      const text = rules().join("\n");
      for (const subnet of subnets) expect(text).toContain(subnet.replace(/\.0\.0\/24|::\/64/, ""));
      await node.ok("CHECK", { ...conf, prevResult }, { netns: c });
      await node.ok("DEL", conf, { netns: c });
      expect([rules(), records()]).toEqual([[], []]);
    }
  });

  test("many containers at once, coming and going", async () => {
    const conf = masq(backend);
    const ids = Array.from({ length: 12 }, (_, i) => `c${i}`);
    const places = ids.map((id) => ({ id, netns: node.container() }));
    const results = await Promise.all(places.map((place) => node.ok("ADD", conf, place)));
    for (const [i, place] of places.entries())
      await node.ok("CHECK", { ...conf, prevResult: results[i] }, place);
    await Promise.all(
      places.flatMap((place, i) =>
        i % 2
          ? [node.ok("DEL", conf, place)]
          : [node.ok("DEL", conf, place).then(() => node.ok("ADD", conf, place))],
      ),
    );
    await Promise.all(places.map((place) => node.ok("DEL", conf, place)));
    nothingLeft();
  });
});

describe("what is unknown or wrong", () => {
  test("a backend of another name", async () => {
    const error = await node.error("ADD", masq("ipchains"), { netns: c });
    expect(`${error.msg}${error.details}`).toContain('unknown ipmasq backend "ipchains"');
  });
  test("STATUS is content with what works here", async () => {
    for (const backend of [...backends, ""]) await node.ok("STATUS", masq(backend));
  });
});

test.runIf(variants.includes("legacy"))("iptables-legacy", async () => {
  process.env.PATH = `${variantFolder("legacy")}:${path}`;
  const conf = masq("iptables");
  const nat = () =>
    ["iptables-legacy-save", "ip6tables-legacy-save"].flatMap((save) =>
      node.host
        .run(save, "-t", "nat")
        .split("\n")
        .filter((line) => /^-A|^:CNI/.test(line)),
    );
  for (const without of ["nothing", "records"]) {
    const prevResult = await node.ok("ADD", conf, { netns: c });
    expect(nat()).toHaveLength(8);
    await node.ok("CHECK", { ...conf, prevResult }, { netns: c });
    if (without === "records") forget();
    await node.ok("DEL", conf);
    expect(nat()).toEqual([]);
  }
  await node.ok("ADD", conf, { netns: c });
  await node.ok("GC", { ...conf, "cni.dev/valid-attachments": [] });
  expect(nat()).toEqual([]);
});
