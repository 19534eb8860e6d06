import { distBin, ip, run } from "@tscni/test-support";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Neighbour, startNeighbour } from "./machine.ts";
import { type Backend, type Podman, podmanProblem, startPodman } from "./podman.ts";

/** First and last of a range that no single iptables rule can name (15 ports a rule). */
const range = { first: 9000, last: 9020 };

/**
 * What people do with Podman, on one backend: the tests build upon one another, as a day's work does, since
 * every container takes half a second.
 */
export function podmanMatrix(backend: Backend): void {
  const problem = podmanProblem();
  let podman: Podman;
  /** A host on the other side of the machine's uplink, 192.0.2.9 and 2001:db8::9. */
  let outside: Neighbour;
  /** What the machine had before its first container, and what stays of the networks themselves. */
  let unused: string[];

  describe(`Podman, ${backend}`, () => {
    beforeEach(({ skip }) => {
      if (problem) skip(problem);
    });
    beforeAll(async () => {
      if (problem) return;
      podman = await startPodman(backend);
      outside = await connectOutside(podman);
      podman.createNetwork("one", ["--subnet=10.77.0.0/24", "--subnet=fd77::/64", "--ipv6"]);
      podman.createNetwork("two", ["--subnet=10.78.0.0/24", "--subnet=fd78::/64", "--ipv6"]);
      podman.createNetwork("inner", ["--subnet=10.79.0.0/24", "--internal"]);
      unused = traces(podman);
    });
    afterAll(() => {
      podman?.close();
      outside?.close();
    });

    const askFrom = (name: string, address: string, port: number, more: { udp?: boolean } = {}) =>
      podman.ask(address, port, { from: `/proc/${podman.pidOf(name)}/ns/net`, ...more });

    test("a container starts, and IPv6 answers at once", () => {
      const ports = [
        "-p8080:80",
        "-p5353:53/udp",
        `-p${range.first}-${range.last}:${range.first}-${range.last}`,
      ];
      podman.serve("web", [80, 53, range.first, range.first + 15, range.last], ["--network=one", ...ports]);
      const netns = `/proc/${podman.pidOf("web")}/ns/net`;
      podman.run("nsenter", `--net=${netns}`, "ping", "-6", "-c1", "-W1", "fd77::1");
      podman.run("ping", "-c1", "-W1", "fd77::2");
      podman.run("ping", "-c1", "-W1", "10.77.0.2");
    });

    test("it serves", () => podman.waitFor("web", 80));

    test.each(["127.0.0.1", "10.77.0.1", "fd77::1", "192.0.2.1", "2001:db8::1"])(
      "a published port by %s of the machine",
      (address) => {
        expect(podman.ask(address, 8080)).toMatch(/^web /);
      },
    );

    test("a range of ports, longer than one rule can be", () => {
      for (const port of [range.first, range.first + 15, range.last])
        expect(podman.ask("127.0.0.1", port)).toMatch(/^web /);
    });

    test.each(["127.0.0.1", "10.77.0.1"])("a UDP port by %s", (address) => {
      expect(podman.ask(address, 5353, { udp: true })).toMatch(/^web /);
    });

    test("a published port from another machine, whose address the container sees", () => {
      expect(podman.ask("192.0.2.1", 8080, { from: outside.path })).toBe("web 192.0.2.9");
      expect(podman.ask("2001:db8::1", 8080, { from: outside.path })).toBe("web 2001:db8::9");
      expect(podman.ask("192.0.2.1", 5353, { from: outside.path, udp: true })).toBe("web 192.0.2.9");
    });

    test("traffic that another machine sends through this one to such a port is left alone", () => {
      expect(podman.ask("198.51.100.1", 8080, { from: outside.path })).toBe("");
    });

    test("a published port from a second container and from the container itself", async () => {
      podman.serve("second", [80], ["--network=one"]);
      await podman.waitFor("second", 80);
      for (const name of ["second", "web"])
        for (const address of ["10.77.0.1", "fd77::1"])
          expect(askFrom(name, address, 8080), `${name} to ${address}`).toMatch(/^web /);
      expect(askFrom("second", "10.77.0.2", 80)).toBe("web 10.77.0.3");
    });

    test("a container reaches other machines, by the address of this one", async () => {
      const far = Bun.spawn(
        [
          "nsenter",
          `--net=${outside.path}`,
          process.execPath,
          `${import.meta.dirname}/server.ts`,
          "far",
          "7000",
        ],
        { stdin: "ignore", stdout: "ignore", stderr: "inherit" },
      );
      try {
        for (let i = 0; i < 200 && podman.ask("192.0.2.9", 7000) === ""; i++) await Bun.sleep(20);
        expect(askFrom("second", "192.0.2.9", 7000)).toBe("far 192.0.2.1");
        expect(askFrom("second", "2001:db8::9", 7000)).toBe("far 2001:db8::1");
      } finally {
        far.kill();
      }
    });

    test("a static address and MAC address", () => {
      podman.serve("fixed", [80], ["--network=one", "--ip=10.77.0.99", "--mac-address=02:11:22:33:44:55"]);
      const [link] = ip(`/proc/${podman.pidOf("fixed")}/ns/net`, "addr", "show", "dev", "eth0");
      expect(link.address).toBe("02:11:22:33:44:55");
      expect(link.addr_info.map((a: { local: string }) => a.local)).toContain("10.77.0.99");
    });

    test("two networks in one container, both reachable", async () => {
      podman.serve("both", [80], ["--network=one", "--network=two", "-p8082:80"]);
      await podman.waitFor("both", 80);
      const addresses = ip(`/proc/${podman.pidOf("both")}/ns/net`, "-4", "addr", "show", "scope", "global")
        .flatMap((link) => link.addr_info)
        .map((a: { local: string }) => a.local.split(".").slice(0, 3).join("."));
      expect(addresses.toSorted()).toEqual(["10.77.0", "10.78.0"]);
      for (const address of ["10.77.0.1", "10.78.0.1", "127.0.0.1"])
        expect(podman.ask(address, 8082), address).toMatch(/^both /);
    });

    test("an internal network: its containers see one another and nothing else", async () => {
      podman.serve("in1", [80], ["--network=inner"]);
      podman.serve("in2", [80], ["--network=inner"]);
      await podman.waitFor("in1", 80);
      expect(askFrom("in2", "10.79.0.2", 80)).toMatch(/^in1 /);
      expect(askFrom("in2", "192.0.2.9", 7000)).toBe("");
      expect(ip(`/proc/${podman.pidOf("in1")}/ns/net`, "route", "show", "default")).toEqual([]);
    });

    test("a restart keeps the ports", async () => {
      podman.podman("restart", "-t0", "web");
      await podman.waitFor("web", 80);
      for (const address of ["127.0.0.1", "10.77.0.1", "fd77::1"])
        expect(podman.ask(address, 8080), address).toMatch(/^web /);
      expect(podman.ask("127.0.0.1", 5353, { udp: true })).toMatch(/^web /);
    });

    test("two containers can't have one port, and the first keeps it", () => {
      const second = podman.tryPodman(
        "run",
        "--network=one",
        "-p8080:80",
        "localhost/box",
        "sh",
        "-c",
        "true",
      );
      expect(second.status).not.toBe(0);
      expect(podman.ask("127.0.0.1", 8080)).toMatch(/^web /);
    });

    test("rules that were flushed come back by podman network reload", () => {
      flush(podman, backend);
      expect(podman.ask("10.77.0.1", 8080)).toBe("");
      podman.podman("network", "reload", "web");
      expect(podman.ask("127.0.0.1", 8080)).toMatch(/^web /);
      expect(podman.ask("192.0.2.1", 8080, { from: outside.path })).toBe("web 192.0.2.9");
    });

    test("and by cnitool repair, from the results that Podman's library keeps", ({ skip }) => {
      if (podman.attempt(`${distBin}/cnitool`, "repair", "--help").status !== 0) skip("not our cnitool");
      const cnitool = (...words: string[]) =>
        podman.run(
          "env",
          `CNI_PATH=${distBin}`,
          `NETCONFPATH=${podman.confDir}`,
          `${distBin}/cnitool`,
          ...words,
        );
      const before = ip(`/proc/${podman.pidOf("web")}/ns/net`, "addr");
      flush(podman, backend);
      expect(podman.ask("10.77.0.1", 8080)).toBe("");
      expect(cnitool("repair", "one")).toMatch(/portmap repaired/);
      expect(podman.ask("10.77.0.1", 8080)).toMatch(/^web /);
      expect(podman.ask("192.0.2.1", 8080, { from: outside.path })).toBe("web 192.0.2.9");
      expect(ip(`/proc/${podman.pidOf("web")}/ns/net`, "addr")).toEqual(before);
      expect(cnitool("repair", "one")).toBe("");
    });

    test("after rm, no link, rule, reservation or cached result is left", () => {
      podman.podman("rm", "-f", "-t0", "-a");
      expect(traces(podman)).toEqual(unused);
    });
  });
}

/** The machine's uplink to a host that has a route to it and, by it, to 198.51.100.0/24. */
async function connectOutside(podman: Podman): Promise<Neighbour> {
  const outside = await startNeighbour();
  podman.run(..."ip link add up0 type veth peer name lan0".split(" "));
  podman.run("ip", "link", "set", "lan0", "netns", String(outside.pid));
  podman.run("ip", "addr", "add", "192.0.2.1/24", "dev", "up0");
  podman.run("ip", "addr", "add", "2001:db8::1/64", "dev", "up0", "nodad");
  podman.run("ip", "link", "set", "up0", "up");
  const inside = (...command: string[]) => run("nsenter", `--net=${outside.path}`, "--", ...command);
  inside("ip", "link", "set", "lo", "up");
  inside("ip", "addr", "add", "192.0.2.9/24", "dev", "lan0");
  inside("ip", "addr", "add", "2001:db8::9/64", "dev", "lan0", "nodad");
  inside("ip", "link", "set", "lan0", "up");
  inside("ip", "route", "add", "198.51.100.0/24", "via", "192.0.2.1");
  return outside;
}

function flush(podman: Podman, backend: Backend): void {
  if (backend === "nftables") podman.run("nft", "flush", "ruleset");
  else for (const table of ["nat", "filter"]) podman.run("iptables", "-t", table, "-F");
}

/**
 * What containers leave traces in, line by line: links, rules, sets, reservations, cached results, our records.
 * Bridges, and chains that are everybody's, stay as long as the machine runs.
 */
function traces(podman: Podman): string[] {
  const links = ip(podman.netns, "link", "show", "type", "veth").map((link) => `link ${link.ifname}`);
  const mine = /10\.7[789]\.|fd7[78]:|8080|8082|5353|900\d|902\d|CNI-DN|CNI-[0-9a-f]{6}/;
  const ruleset = [["iptables-save"], ["ip6tables-save"], ["nft", "-nn", "list", "ruleset"]]
    .flatMap((command) => podman.run(...command).split("\n"))
    .filter((line) => mine.test(line))
    .map((line) => line.trim());
  const files = podman
    .attempt("find", "/var/lib/cni", "/run/tscni", "/run/cni", "-type", "f")
    .stdout.split("\n");
  // What a network, not a container, has: locks, the address given last, an index.
  return [
    ...links,
    ...ruleset,
    ...files.filter((file) => !/(^|lock|\/last_reserved_ip\.\d|\/\.tscni-index)$/.test(file)),
  ];
}
