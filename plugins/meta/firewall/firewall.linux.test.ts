import { existsSync, readdirSync, rmSync } from "node:fs";
import { makeNode, type TestNode } from "@tscni/test-support";
import { specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  allTools,
  callFirewall,
  confWith,
  elementsIn,
  firewallError,
  makeTools,
  okFirewall,
  realTools,
  resultWith,
  rulesOf,
} from "./testing.ts";

const folder = "/run/tscni/firewall";
const [v4, v6] = ["10.201.0.5", "fd01::5"];
const both = [`${v4}/24`, `${v6}/64`];
/** No system bus, so that the machine's own firewalld is not asked. */
const env = { DBUS_SYSTEM_BUS_ADDRESS: "unix:path=/nonexistent" };

let node: TestNode;
let tools: ReturnType<typeof makeTools> | undefined;
beforeEach(() => {
  node = makeNode();
});
afterEach(() => {
  node.close();
  tools?.remove();
  tools = undefined;
  rmSync(`${folder}/fwnet`, { recursive: true, force: true });
});

const ok = (verb: string, conf: object, more: object = {}) => okFirewall(node, verb, conf, { env, ...more });
const error = (verb: string, conf: object, more: object = {}) =>
  firewallError(node, verb, conf, { env, ...more });
const attached = (more: object = {}, addresses = both, bridge?: string) =>
  confWith({ ...more, prevResult: resultWith(addresses, bridge) });

/** What is there for the container, in any backend. */
const traces = () => [
  ...rulesOf(node, 4, v4),
  ...rulesOf(node, 6, v6),
  ...elementsIn(node)
    .split("\n")
    .filter((line) => line.includes(v4) || line.includes(v6)),
];
const records = () => (existsSync(`${folder}/fwnet`) ? readdirSync(`${folder}/fwnet`) : []);
/** Of our addresses: other tests run at the same time. */
const owners = () => {
  const all = "/run/tscni/firewall-address/all";
  return existsSync(all) ? readdirSync(all).filter((name) => /^(10\.201|fd01)/.test(name)) : [];
};

describe.each(["iptables", "nftables"])("%s", (backend) => {
  describe.each(["open", "same-bridge", "isolated"])("%s", (ingressPolicy) => {
    const own = { backend, ingressPolicy };

    test("ADD, CHECK, ADD again changes nothing, DEL by the record alone", async () => {
      const added = await callFirewall(node, "ADD", attached(own), { env });
      expect(added.json).toEqual(resultWith(both));
      expect(traces()).toHaveLength(backend === "iptables" ? 4 : 2);
      const state = node.state();
      await ok("CHECK", attached(own));
      await ok("ADD", attached(own));
      expect(node.state()).toEqual(state);

      await ok("DEL", confWith(own), { netns: "" });
      expect(traces()).toEqual([]);
      expect(records()).toEqual([]);
      await ok("DEL", confWith(own));
      await ok("DEL", attached(own));
      expect((await error("CHECK", attached(own))).msg).toMatch(/lacks/);
    });

    test("what was flushed CHECK names and does not make; repair does; DEL succeeds without", async () => {
      await ok("ADD", attached(own));
      const flush = () =>
        backend === "iptables"
          ? ["iptables", "ip6tables"].flatMap((name) =>
              [["-F"], ["-X"]].map((args) => node.host.run(name, ...args)),
            )
          : node.host.run("nft", "flush", "ruleset");
      flush();
      const state = node.state();
      expect((await error("CHECK", attached(own))).msg).toMatch(/lacks|has 0 of/);
      expect(node.state()).toEqual(state);
      await ok("CHECK", { ...attached(own), "tscni/repair": true });
      await ok("CHECK", attached(own));
      flush();
      await ok("DEL", confWith(own));
      expect(traces()).toEqual([]);
    });
  });

  test("each of CHECK's rules is missed", async () => {
    const own = { backend, ingressPolicy: "isolated" };
    await ok("ADD", attached(own));
    const command = backend === "iptables" ? "iptables" : "nft";
    const deletions =
      backend === "iptables"
        ? node.host
            .run("iptables-save", "-t", "filter")
            .split("\n")
            .filter((line) => line.startsWith("-A ") && !line.includes("-j RETURN"))
            .map((line) => [
              "-D",
              ...line
                .slice(3)
                .match(/"[^"]*"|\S+/g)!
                .map((text) => text.replaceAll('"', "")),
            ])
        : [
            ["flush", "chain", "inet", "tscni_firewall", "forward"],
            ["flush", "chain", "inet", "tscni_firewall", "isolation"],
            ...["containers4", "containers6", "bridges", "within", "isolated"].map((set) => [
              "flush",
              "set",
              "inet",
              "tscni_firewall",
              set,
            ]),
          ];
    expect(deletions.length).toBeGreaterThan(6);
    for (const args of deletions) {
      node.host.run(command, ...args);
      expect((await error("CHECK", attached(own))).msg, args.join(" ")).toMatch(/lacks|has 0 of/);
      await ok("CHECK", { ...attached(own), "tscni/repair": true });
    }
    await ok("DEL", confWith(own));
  });

  test("a late DEL of an address's previous owner leaves the rules of the next one", async () => {
    const own = { backend };
    await ok("ADD", attached(own), { id: "old" });
    await ok("ADD", attached(own), { id: "new" });
    await ok("DEL", attached(own), { id: "old" });
    await ok("CHECK", attached(own), { id: "new" });
    await ok("DEL", attached(own), { id: "old" });
    await ok("DEL", attached({ ...own, name: "othernet" }), { id: "other" });
    await ok("CHECK", attached(own), { id: "new" });
    await ok("DEL", confWith(own), { id: "new" });
    expect(traces()).toEqual([]);
    expect(owners()).toEqual([]);
  });

  test("another address or backend at the next ADD: nothing of the first stays", async () => {
    await ok("ADD", attached({ backend }));
    await ok("ADD", attached({ backend }, ["10.201.0.9/24"]));
    expect(traces()).toEqual([]);
    const other = backend === "iptables" ? "nftables" : "iptables";
    await ok("ADD", attached({ backend: other }));
    expect(traces()).toHaveLength(other === "iptables" ? 4 : 2);
    expect([...rulesOf(node, 4, "10.201.0.9"), elementsIn(node)].join().includes("10.201.0.9")).toBe(false);
    await ok("DEL", confWith());
    expect(traces()).toEqual([]);
  });

  test("GC removes what is not listed, in one transaction a family, and says so", async () => {
    const own = { backend };
    await ok("ADD", attached(own), { id: "kept" });
    for (let i = 10; i < 20; i++)
      await ok("ADD", attached(own, [`10.201.0.${i}/24`, `fd01::${i}/64`]), { id: `stale${i}` });
    const before = node.state();
    await ok("GC", confWith(own));
    expect(node.state(), "without a list nothing is known").toEqual(before);

    tools = makeTools(realTools(...allTools));
    const valid = [{ containerID: "kept", ifname: "eth0" }];
    const said = await ok("GC", confWith({ ...own, "cni.dev/valid-attachments": valid }), {
      env: { ...env, PATH: tools.path },
    });
    const programs = backend === "iptables" ? ["iptables-restore", "ip6tables-restore"] : ["nft"];
    expect(tools.started().toSorted()).toEqual(programs.toSorted());
    expect(said.match(/gc: removed rules of stale\d+ eth0 \(10\.201\.0\.\d+, fd01::\d+\)/g)).toHaveLength(10);
    await ok("CHECK", attached(own), { id: "kept" });
    expect([...rulesOf(node, 4, "10.201.0.1"), ...rulesOf(node, 6, "fd01::1")]).toEqual([]);
    expect(elementsIn(node)).not.toContain("10.201.0.1");
    await ok("DEL", confWith(own), { id: "kept" });
  });

  test("DELs that are announced go in one transaction, and then start no process", async () => {
    const own = { backend };
    for (let i = 1; i <= 5; i++) await ok("ADD", attached(own, [`10.201.0.${i}/24`]), { id: `c${i}` });
    tools = makeTools(realTools(...allTools));
    const traced = { env: { ...env, PATH: tools.path } };
    const next = [2, 3, 4, 5].map((i) => ({ containerID: `c${i}`, ifname: "eth0" }));
    await ok("DEL", attached({ ...own, "tscni/deleted-next": next }, ["10.201.0.1/24"]), {
      id: "c1",
      ...traced,
    });
    expect(tools.started()).toHaveLength(2);
    expect([...rulesOf(node, 4, "10.201.0."), elementsIn(node)].join()).not.toContain("10.201");
    for (let i = 2; i <= 5; i++)
      await ok("DEL", attached(own, [`10.201.0.${i}/24`]), { id: `c${i}`, ...traced });
    expect(tools.started()).toHaveLength(2);
    expect(records()).toEqual([]);
  });

  test("all versions of the specification", async () => {
    for (const cniVersion of specVersions) {
      const old = cniVersion === "0.1.0" || cniVersion === "0.2.0";
      const prevResult = old
        ? { cniVersion, ip4: { ip: both[0] }, ip6: { ip: both[1] } }
        : {
            cniVersion,
            interfaces: [{ name: "brfw" }, { name: "eth0", sandbox: "/run/netns/c1" }],
            ips: both.map((address, i) => ({ version: i === 0 ? "4" : "6", interface: 1, address })),
          };
      const conf = confWith({ cniVersion, backend, prevResult });
      await ok("ADD", conf);
      expect(traces(), cniVersion).toHaveLength(backend === "iptables" ? 4 : 2);
      await ok("DEL", conf);
      expect(traces(), cniVersion).toEqual([]);
    }
  });

  test("ADDs at the same time make every rule once", async () => {
    const own = { backend, ingressPolicy: "isolated" };
    const ids = Array.from({ length: 12 }, (_, i) => i + 30);
    const conf = (i: number) => attached(own, [`10.201.0.${i}/24`, `fd01::${i}/64`]);
    await Promise.all(ids.map((i) => ok("ADD", conf(i), { id: `c${i}` })));
    await Promise.all(ids.map((i) => ok("CHECK", conf(i), { id: `c${i}` })));
    const lines = [...rulesOf(node, 4, ""), ...rulesOf(node, 6, "fd01")];
    if (backend === "iptables") expect(lines.filter((line, i) => lines.indexOf(line) !== i)).toEqual([]);
    await Promise.all(ids.map((i) => ok("DEL", confWith(own), { id: `c${i}` })));
    expect([...rulesOf(node, 4, "10.201"), ...rulesOf(node, 6, "fd01"), elementsIn(node)].join()).not.toMatch(
      /10\.201|fd01/,
    );
  });
});

describe("nftables: bridges", () => {
  test("the last container of a policy takes its bridge along", async () => {
    const own = { backend: "nftables" };
    const isolated = { ...own, ingressPolicy: "isolated" };
    const same = { ...own, ingressPolicy: "same-bridge" };
    await ok("ADD", attached(isolated, ["10.201.0.1/24"], "brfw7"), { id: "a" });
    await ok("ADD", attached(isolated, ["10.201.0.2/24"], "brfw7"), { id: "b" });
    await ok("ADD", attached(same, ["10.201.0.3/24"], "brfw7"), { id: "c" });
    const sets = () => elementsIn(node).match(/"brfw7"( \. "brfw7")?/g)?.length ?? 0;
    expect(sets()).toBe(3);
    await ok("DEL", confWith(own), { id: "a" });
    expect(sets()).toBe(3);
    await ok("DEL", confWith(own), { id: "b" });
    expect(sets(), "no longer isolated").toBe(2);
    await ok("DEL", confWith(own), { id: "c" });
    expect(elementsIn(node)).toBe("");
  });
});

test("iptables: GC removes the rules of a bridge that is gone, and no other's", async () => {
  const own = { backend: "iptables", ingressPolicy: "isolated" };
  node.host.run("ip", "link", "add", "brfw8", "type", "bridge");
  await ok("ADD", attached(own, both, "brfw7"), { id: "a" });
  await ok("ADD", attached(own, ["10.201.0.8/24"], "brfw8"), { id: "b" });
  await ok("ADD", attached(own, ["10.201.0.9/24"], "brfw9"), { id: "kept" });
  const valid = [{ containerID: "kept", ifname: "eth0" }];
  const said = await ok("GC", confWith({ "cni.dev/valid-attachments": valid }));
  expect(said).toContain("gc: removed the ingress policy of the bridge brfw7, which is gone");
  expect([...rulesOf(node, 4, "brfw7"), ...rulesOf(node, 6, "brfw7")]).toEqual([]);
  for (const bridge of ["brfw8", "brfw9"]) expect(rulesOf(node, 4, bridge)).toHaveLength(3);
  await ok("CHECK", attached(own, ["10.201.0.9/24"], "brfw9"), { id: "kept" });
  await ok("DEL", confWith(own), { id: "kept" });
});

describe("nothing asked, nothing run", () => {
  test("without addresses, and without a record", async () => {
    tools = makeTools(Object.fromEntries(allTools.map((name) => [name, "exit 1"])));
    const traced = { env: { ...env, PATH: tools.path } };
    for (const conf of [attached({}, []), attached({ ingressPolicy: "isolated" }, [])]) {
      await ok("ADD", conf, traced);
      await ok("CHECK", conf, traced);
      await ok("DEL", conf, traced);
    }
    await ok("DEL", confWith(), traced);
    await ok("DEL", attached(), traced);
    await ok("GC", confWith({ "cni.dev/valid-attachments": [] }), traced);
    expect(tools.started()).toEqual([]);
    expect(records()).toEqual([]);
  });

  test("one process to remove one family", async () => {
    await ok("ADD", attached({}, [both[0]!]));
    tools = makeTools(realTools(...allTools));
    await ok("DEL", attached({}, [both[0]!]), { env: { ...env, PATH: tools.path } });
    expect(tools.started()).toEqual(["iptables-restore"]);
  });

  test("ADD and CHECK without prevResult are told so", async () => {
    for (const verb of ["ADD", "CHECK"])
      expect(await error(verb, confWith())).toMatchObject({
        code: 7,
        msg: "missing prevResult from earlier plugin",
      });
  });
});

describe("tools that are not there, or fail", () => {
  const withTools = (scripts: Record<string, string>) => {
    tools = makeTools(scripts);
    return { env: { ...env, PATH: tools.path } };
  };
  const iptables = realTools("iptables-save", "iptables-restore");

  test("IPv4 alone needs no ip6tables", async () => {
    const traced = withTools(iptables);
    await ok("ADD", attached({}, [both[0]!]), traced);
    await ok("CHECK", attached({}, [both[0]!]), traced);
    await ok("DEL", confWith(), traced);
    expect(traces()).toEqual([]);
    expect(await ok("STATUS", confWith({ backend: "iptables" }), traced)).toBe("");
  });

  test("IPv6 alone needs no iptables", async () => {
    const traced = withTools(realTools("ip6tables-save", "ip6tables-restore"));
    await ok("ADD", attached({ backend: "iptables" }, [both[1]!]), traced);
    await ok("DEL", confWith(), traced);
    expect(traces()).toEqual([]);
  });

  test("without iptables it is nftables, and nothing is left in either", async () => {
    const traced = withTools({ ...iptables, ...realTools("nft") });
    await ok("ADD", attached(), traced);
    expect(rulesOf(node, 4, v4), "both families or none").toEqual([]);
    expect(elementsIn(node)).toContain(v6);
    await ok("CHECK", attached(), traced);
    await ok("DEL", confWith(), traced);
    expect(traces()).toEqual([]);
  });

  test("with neither, ADD says what to install, STATUS is 50, DEL succeeds", async () => {
    const traced = withTools({});
    expect((await error("ADD", attached(), traced)).msg).toMatch(
      /iptables-save is missing: install the package iptables/,
    );
    for (const own of [{}, { backend: "iptables" }, { backend: "nftables" }, { backend: "firewalld" }])
      expect(await error("STATUS", confWith(own), traced)).toMatchObject({ code: 50 });
    await ok("DEL", attached(), traced);
  });

  test("gone before the DEL: a warning, and GC does it once they are back", async () => {
    await ok("ADD", attached());
    const said = await ok("DEL", confWith(), withTools({}));
    expect(said).toMatch(/rules may be left behind: .*is missing: install the package iptables/);
    expect(traces()).toHaveLength(4);
    await ok("GC", confWith({ "cni.dev/valid-attachments": [] }));
    expect(traces()).toEqual([]);
  });

  test.each([
    ["fails", "echo 'something new' >&2; exit 2", /ip6tables-restore: something new/],
    ["is killed", "kill -9 $$", /ip6tables-restore was ended by signal/],
  ])("one that %s in the middle of an ADD: the other family is taken back", async (_, script, message) => {
    const real = realTools("iptables-save", "iptables-restore", "ip6tables-save");
    const traced = withTools({ ...real, "ip6tables-restore": script });
    expect((await error("ADD", attached({ backend: "iptables" }), traced)).msg).toMatch(message);
    expect(rulesOf(node, 4, v4)).toEqual([]);
    await ok("ADD", attached());
    expect((await error("DEL", confWith(), traced)).msg).toMatch(message);
    expect(rulesOf(node, 4, v4)).toEqual([]);
    await ok("DEL", confWith());
    expect(traces()).toEqual([]);
  });

  test("nft that fails: an error, and nothing is left", async () => {
    const traced = withTools({ nft: "echo 'Error: syntax' >&2; exit 1" });
    expect((await error("ADD", attached({ backend: "nftables" }), traced)).msg).toBe("nft: Error: syntax");
    expect(traces()).toEqual([]);
    await ok("DEL", confWith());
    expect(records()).toEqual([]);
  });
});

test("wrong values are errors at ADD and warnings at DEL", async () => {
  const wrong = { backend: "ebpf", ingressPolicy: "closed", iptablesAdminChainName: "a\nCOMMIT" };
  await ok("ADD", attached({ ingressPolicy: "isolated" }));
  for (const [key, value] of Object.entries(wrong))
    expect(await error("ADD", attached({ [key]: value }), { id: "c2" })).toMatchObject({ code: 7 });
  const said = await ok("DEL", attached({ ...wrong, firewalldZone: 7 }));
  for (const key of [...Object.keys(wrong), "firewalldZone"]) expect(said).toContain(`ignoring ${key}: `);
  expect(traces()).toEqual([]);
});

test("a damaged record counts as none: the previous result tells", async () => {
  await ok("ADD", attached({ backend: "iptables" }));
  await Bun.write(`${folder}/fwnet/c1:eth0`, "{");
  expect(await ok("DEL", attached())).toContain(`ignoring ${folder}/fwnet/c1:eth0`);
  expect(traces()).toEqual([]);
  await ok("ADD", attached({ backend: "nftables" }));
  rmSync(`${folder}/fwnet`, { recursive: true });
  await ok("DEL", attached());
  expect(traces()).toEqual([]);
});

test("another chain of the administrator's goes first, and stays", async () => {
  const own = { backend: "iptables", iptablesAdminChainName: "MY-ADMIN" };
  await ok("ADD", attached(own));
  node.host.run("iptables", "-A", "MY-ADMIN", "-j", "DROP");
  expect(rulesOf(node, 4, "-A CNI-FORWARD")[0]).toContain("-j MY-ADMIN");
  await ok("CHECK", attached(own));
  await ok("DEL", confWith(own));
  expect(rulesOf(node, 4, "MY-ADMIN")).toContain("-A MY-ADMIN -j DROP");
});

test("isolation is put in front again when something got before it", async () => {
  const own = { backend: "iptables", ingressPolicy: "same-bridge" };
  await ok("ADD", attached(own));
  const jump = ["-m", "comment", "--comment", "CNI firewall plugin rules", "-j", "CNI-FORWARD"];
  node.host.run("iptables", "-D", "FORWARD", ...jump);
  node.host.run("iptables", "-I", "FORWARD", "1", ...jump);
  expect((await error("CHECK", attached(own))).msg).toContain("in front of");
  await ok("CHECK", { ...attached(own), "tscni/repair": true });
  expect(rulesOf(node, 4, "-A FORWARD").map((line) => line.split("-j ")[1])).toEqual([
    "CNI-ISOLATION-STAGE-1",
    "CNI-FORWARD",
  ]);
  await ok("DEL", confWith(own));
});
