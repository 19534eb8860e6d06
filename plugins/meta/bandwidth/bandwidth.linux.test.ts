import { ip, type NodeCall } from "@tscni/test-support";
import { specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Lab, makeLab, ownName, referenceName } from "./testing.ts";

let lab: Lab;
beforeEach(async () => {
  lab = await makeLab();
});
afterEach(() => lab.node.close());

const ingress = { ingressRate: 10_000_000, ingressBurst: 1_000_000 };
const egress = { egressRate: 20_000_000, egressBurst: 2_000_000 };
const both = { ...ingress, ...egress };

const here = (more: NodeCall = {}): NodeCall => ({ netns: lab.container, ...more });
const add = (more: object, call?: NodeCall) => lab.node.ok("ADD", lab.conf(more), here(call));
const name = () => referenceName("testnet", "c1");

/** Root and ingress of the host's end and the ifbs, without what each link has by default. */
const queues = (): object[] =>
  lab
    .tc("qdisc")
    .filter((q) => q.kind !== "noqueue")
    .map(({ dev, kind, options }) => ({ dev, kind, ...(kind === "tbf" ? { options } : {}) }));

const state = () => ({ host: lab.node.state(), queues: queues() });

describe.each(specVersions.slice(2))("cniVersion %s", (cniVersion) => {
  test("ADD limits both ways, CHECK is content, DEL leaves no ifb", async () => {
    lab.node.close();
    lab = await makeLab(cniVersion);
    const before = state();
    const result = await add(both);
    expect(result.interfaces).toHaveLength(4);
    expect(result.interfaces.slice(0, 3)).toEqual(lab.prevResult.interfaces);
    const [ifb] = ip(lab.node.host, "link", "show", "type", "ifb");
    expect(result.interfaces[3]).toMatchObject({ name: name(), mac: ifb.address });
    expect(ifb).toMatchObject({ ifname: name(), mtu: 1500, ifalias: "tscni testnet c1 eth0" });
    expect(ifb.flags).toContain("UP");

    const bucket = (dev: string, rate: number, burst: number) => ({
      dev,
      kind: "tbf",
      options: { rate: rate / 8, burst: burst / 8, lat: 25_000 },
    });
    expect(queues()).toHaveLength(3);
    expect(queues()).toEqual(
      expect.arrayContaining([
        bucket(lab.port, 10_000_000, 1_000_000),
        { dev: lab.port, kind: "ingress" },
        bucket(name(), 20_000_000, 2_000_000),
      ]),
    );
    const later = { ...both, prevResult: result };
    if (cniVersion !== "0.3.0" && cniVersion !== "0.3.1") await lab.node.ok("CHECK", lab.conf(later), here());
    await lab.node.ok("DEL", lab.conf(later), here());
    expect(state().host).toEqual(before.host);
    await lab.node.ok("DEL", lab.conf(later), here());
  });
});

test("the versions whose results have no interfaces are not offered", async () => {
  const { code } = await lab.node.error("ADD", { ...lab.conf(both), cniVersion: "0.2.0" }, here());
  expect(code).toBe(1);
});

describe("nothing is asked for", () => {
  test.each([{}, { ingressRate: 0, ingressBurst: 0 }, { latency: 5 }])(
    "%j: nothing is done",
    async (more) => {
      const before = state();
      const result = await lab.node.ok("ADD", lab.conf(more), { netns: "/run/netns/none" });
      expect(result).toEqual(lab.prevResult);
      expect(state()).toEqual(before);
    },
  );
  test("one way: only that", async () => {
    expect((await add(ingress)).interfaces).toHaveLength(3);
    expect([lab.ifbs(), queues()]).toMatchObject([[], [{ dev: lab.port, kind: "tbf" }]]);
    await lab.node.ok("CHECK", lab.conf(ingress), here());
  });
});

test("the runtime's limits, as containerd spells them, and the queue's latency", async () => {
  const bandwidth = { IngressRate: 8_000_000, IngressBurst: 800_000 };
  await add({ latency: 5, runtimeConfig: { bandwidth } });
  expect(queues()).toEqual([
    { dev: lab.port, kind: "tbf", options: { rate: 1_000_000, burst: 100_000, lat: 5000 } },
  ]);
});

test("a bucket smaller than a packet is warned of", async () => {
  const call = (ingressBurst: number) =>
    lab.node.call("ADD", lab.conf({ ingressRate: 8_000_000, ingressBurst }), here());
  expect((await call(8 * 1400)).stderr).toMatch(
    /^bandwidth: ingressBurst: 1400 bytes are less than a packet of 1514/,
  );
  expect((await call(8 * 1516)).stderr).toBe("");
});

describe("ADD refuses", () => {
  test.each([
    [{ ingressRate: 8000 }, 7, "if rate is set, burst must also be set"],
    [{ ...both, prevResult: undefined }, 7, "Required prevResult missing"],
    [{ prevResult: undefined }, 7, "Required prevResult missing"],
    [{ ...both, prevResult: { cniVersion: "1.1.0" } }, 999, /^prevResult has no interface "veth/],
  ])("%j", async (more, code, msg) => {
    const before = state();
    const error = await lab.node.error("ADD", lab.conf(more), here());
    expect(error.code).toBe(code);
    if (typeof msg === "string") expect(error.msg).toBe(msg);
    else expect(error.msg).toMatch(msg);
    expect(state()).toEqual(before);
  });

  test("an interface that is no veth, or not there, or whose other end is elsewhere", async () => {
    lab.container.run("ip", "link", "add", "eth1", "type", "ifb");
    lab.container.run("ip", "link", "add", "eth2", "type", "veth", "peer", "name", "eth3");
    const error = async (ifName: string) =>
      (await lab.node.error("ADD", lab.conf(both), here({ ifName }))).msg;
    expect(await error("eth1")).toBe("container interface eth1 has no veth peer: it is another kind");
    expect(await error("eth9")).toBe("container interface eth9 has no veth peer: it is missing");
    expect(await error("eth2")).toMatch(/^veth peer with index \d+ is not in host ns$/);
  });
});

describe("an ADD that fails takes everything back", () => {
  test("after the first bucket: the kernel refuses the second, which would hold nothing", async () => {
    const before = state();
    const tooShort = { egressRate: 8e12, egressBurst: 8 };
    const { msg } = await lab.node.error("ADD", lab.conf({ ...ingress, ...tooShort }), here());
    expect(msg).toMatch(/^RTM_NEWQDISC tbf on index .*EINVAL/);
    expect(state()).toEqual(before);
  });

  test("after both buckets: the host's end has a clsact already, which stays", async () => {
    lab.node.host.run("tc", "qdisc", "add", "dev", lab.port, "clsact");
    const before = state();
    const { msg } = await lab.node.error("ADD", lab.conf(both), here());
    expect(msg).toMatch(/^RTM_NEWTFILTER redirect of index/);
    expect(state()).toEqual(before);
  });

  test("after everything: nobody reads the result", async () => {
    const before = state();
    const [file, ...args] = lab.node.command("bandwidth");
    const { exitCode } = Bun.spawnSync(["sh", "-c", '"$@" >/dev/full', "sh", file!, ...args], {
      env: {
        CNI_COMMAND: "ADD",
        CNI_CONTAINERID: "c1",
        CNI_NETNS: lab.container.path,
        CNI_IFNAME: "eth0",
        CNI_PATH: "/",
        PATH: process.env.PATH,
      },
      stdin: new TextEncoder().encode(JSON.stringify(lab.conf(both))),
    });
    expect(exitCode).not.toBe(0);
    expect(state()).toEqual(before);
  });
});

describe("what an ADD without a DEL left", () => {
  test("is replaced", async () => {
    await add(both);
    await add({ ...ingress, egressRate: 40_000_000, egressBurst: 2_000_000 });
    expect(lab.ifbs()).toEqual([name()]);
    expect(
      lab.tc("filter", "show", "dev", lab.port, "ingress").filter((f) => f.options?.actions),
    ).toHaveLength(1);
    await lab.node.ok(
      "CHECK",
      lab.conf({ ...ingress, egressRate: 40_000_000, egressBurst: 2_000_000 }),
      here(),
    );
  });
  test("is replaced when it has no label, as one killed before labelling leaves it", async () => {
    lab.node.host.run("ip", "link", "add", name(), "type", "ifb");
    await add(both);
    expect(lab.ifbs()).toEqual([name()]);
    await lab.node.ok("CHECK", lab.conf(both), here());
  });
});

describe("two interfaces of one container on one network", () => {
  let second: { interfaces: { name: string }[] };
  const onSecond: NodeCall = { ifName: "net1" };
  beforeEach(async () => {
    second = await lab.node.ok("ADD", lab.node.bridgeConf({ isGateway: true }), here(onSecond));
  });
  const own = () => ownName("testnet", "c1", "net1");

  test("have an ifb each, and each DEL deletes its own", async () => {
    await add(both);
    await add({ ...both, prevResult: second }, onSecond);
    expect(lab.ifbs()).toEqual([name(), own()].sort());
    await lab.node.ok("CHECK", lab.conf(both), here());
    await lab.node.ok("CHECK", lab.conf({ ...both, prevResult: second }), here(onSecond));
    await lab.node.ok("DEL", lab.conf(), here());
    expect(lab.ifbs()).toEqual([own()]);
    await lab.node.ok("DEL", lab.conf(), here());
    expect(lab.ifbs()).toEqual([own()]);
    await lab.node.ok("DEL", lab.conf(), here(onSecond));
    expect(lab.ifbs()).toEqual([]);
  });

  test("the second moves to the usual name when that is free and its own is made anew", async () => {
    await add(both);
    await add({ ...both, prevResult: second }, onSecond);
    await lab.node.ok("DEL", lab.conf(), here());
    for (const verb of ["ADD", "CHECK", "DEL"]) {
      await lab.node.ok(verb, lab.conf({ ...both, prevResult: second }), here(onSecond));
      expect(lab.ifbs(), verb).toEqual(verb === "DEL" ? [] : [name()]);
    }
  });

  test("also when the first one's has no label because Go made it", async () => {
    lab.node.host.run("ip", "link", "add", name(), "up", "type", "ifb");
    lab.node.host.run("tc", "qdisc", "add", "dev", lab.port, "ingress");
    const filter = `filter add dev ${lab.port} parent ffff: protocol all prio 1 u32 match u32 0 0`;
    lab.node.host.run("tc", ...`${filter} action mirred egress redirect dev ${name()}`.split(" "));
    await add({ ...both, prevResult: second }, onSecond);
    expect(lab.ifbs()).toEqual([name(), own()].sort());
    await lab.node.ok("DEL", lab.conf(), here(onSecond));
    expect(lab.ifbs()).toEqual([name()]);
    await lab.node.ok("DEL", lab.conf(), here());
    expect(lab.ifbs()).toEqual([]);
  });
});

test.each([
  ["no namespace", { netns: "" }, {}],
  ["a namespace that is gone", { netns: "/run/netns/tscni-no-such" }, {}],
  ["no prevResult and no limits", {}, { prevResult: undefined }],
  ["limits that ADD refuses", {}, { ingressRate: "x", egressRate: 8, latency: -1 }],
])("DEL with %s deletes the ifb", async (_, call, more) => {
  await add(both);
  await lab.node.ok("DEL", lab.conf(more), here(call));
  expect(lab.ifbs()).toEqual([]);
});

describe("CHECK finds", () => {
  const tc = (...args: string[]) => lab.node.host.run("tc", ...args);
  const change = (dev: string, bucket: string) =>
    tc("qdisc", "change", "dev", dev, "root", "tbf", ...bucket.split(" "));
  test.each([
    ["the ifb gone", () => lab.node.host.run("ip", "link", "del", name()), /^the ifb of eth0 is missing/],
    ["the ifb down", () => lab.node.host.run("ip", "link", "set", name(), "down"), /is down$/],
    ["no bucket", () => tc("qdisc", "del", "dev", lab.port, "root"), /^veth.* has no token bucket$/],
    ["no bucket on the ifb", () => tc("qdisc", "del", "dev", name(), "root"), /^bwp.* has no token bucket$/],
    [
      "another rate",
      () => change(lab.port, "rate 11mbit burst 125000 limit 156250"),
      /^the rate of veth.* is 1375000 B\/s, not 1250000$/,
    ],
    [
      "another limit",
      () => change(lab.port, "rate 10mbit burst 125000 limit 156251"),
      /^the limit of veth.* is 156251 bytes, not 156250$/,
    ],
    [
      "another burst",
      () => change(name(), "rate 20mbit burst 125000 limit 312500"),
      /^the burst of bwp.* is 125000 bytes, not 250000$/,
    ],
    ["no redirection", () => tc("qdisc", "del", "dev", lab.port, "ingress"), /is not redirected to bwp/],
    [
      "the veth gone",
      () => lab.container.run("ip", "link", "del", "eth0"),
      /has no veth peer: it is missing/,
    ],
  ])("%s", async (_, spoil, message) => {
    await add(both);
    await lab.node.ok("CHECK", lab.conf(both), here());
    spoil();
    expect((await lab.node.error("CHECK", lab.conf(both), here())).msg).toMatch(message);
  });
});

test("repair puts back what others have taken away", async () => {
  const result = await add(both);
  const repaired = lab.conf({ ...both, prevResult: result, "tscni/repair": true });
  for (const command of [
    `tc qdisc del dev ${lab.port} root`,
    `tc qdisc del dev ${lab.port} ingress`,
    `tc qdisc del dev ${name()} root`,
    `ip link set ${name()} down`,
    `ip link del ${name()}`,
    `ip link del ${name()}; tc qdisc del dev ${lab.port} root; tc qdisc del dev ${lab.port} ingress`,
  ]) {
    lab.node.host.run("sh", "-c", command);
    await lab.node.error("CHECK", lab.conf(both), here());
    await lab.node.ok("CHECK", repaired, here());
    lab.container.run("ping", "-c1", "-W1", "10.88.0.1");
  }
  expect(lab.ifbs()).toEqual([name()]);
});

describe("GC", () => {
  const gc = (valid: object[] | undefined) =>
    lab.node.call("GC", lab.conf(valid ? { "cni.dev/valid-attachments": valid } : {}));

  test("deletes the ifbs of this network that are not listed, and says so", async () => {
    await add(both);
    await lab.node.ok("ADD", lab.conf({ ...both, name: "other" }), here({ id: "c7" }));
    expect(await gc(undefined)).toMatchObject({ status: 0, stderr: "" });
    expect(await gc([{ containerID: "c1", ifname: "eth0" }])).toMatchObject({ status: 0, stderr: "" });
    expect(lab.ifbs()).toHaveLength(2);
    expect(await gc([{ containerID: "c1", ifname: "net1" }])).toMatchObject({
      status: 0,
      stdout: "",
      stderr: `bandwidth: gc: removed link ${name()} (tscni testnet c1 eth0)\n`,
    });
    expect(lab.ifbs()).toEqual([referenceName("other", "c7")]);
  });

  test("and those without a label that nothing is redirected to", async () => {
    const [used, unused, listed] = [referenceName("x", "1"), referenceName("x", "2"), name()];
    for (const ifb of [used, unused, listed, "ifb0x"])
      lab.node.host.run("ip", "link", "add", ifb, "type", "ifb");
    lab.node.host.run("tc", "qdisc", "add", "dev", lab.port, "ingress");
    const filter = `filter add dev ${lab.port} parent ffff: protocol all prio 1 u32 match u32 0 0`;
    lab.node.host.run("tc", ...`${filter} action mirred egress redirect dev ${used}`.split(" "));
    const { stderr } = await gc([{ containerID: "c1", ifname: "eth0" }]);
    expect(stderr).toBe(`bandwidth: gc: removed link ${unused}\n`);
    expect(lab.ifbs()).toEqual([used, listed, "ifb0x"].sort());
  });
});

test("STATUS is good here, makes nothing, and refuses what ADD would", async () => {
  const before = state();
  await lab.node.ok("STATUS", lab.conf(both));
  expect(state()).toEqual(before);
  expect((await lab.node.error("STATUS", lab.conf({ ingressRate: 8 }))).code).toBe(7);
});
