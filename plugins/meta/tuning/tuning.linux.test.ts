import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import {
  distBin,
  ip,
  makeNamespace,
  runInProcess,
  runPlugin,
  type TestNamespace,
  temporaryFolder,
} from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import tuning from "./tuning.ts";

let ns: TestNamespace;
let data: ReturnType<typeof temporaryFolder>;
let dataDir: string;
beforeEach(() => {
  ns = newContainer();
  data = temporaryFolder();
  dataDir = join(data.path, "not", "there", "yet");
});
afterEach(() => {
  ns.close();
  data.remove();
});

const oldMac = "0a:00:00:00:00:01";

/** A container with an interface "eth0". */
function newContainer(): TestNamespace {
  const made = makeNamespace();
  made.run("ip", "link", "add", "eth0", "address", oldMac, "type", "veth", "peer", "name", "other");
  made.run("ip", "link", "set", "eth0", "up");
  return made;
}

const prevResultOf = (cniVersion: string) =>
  atLeast(cniVersion, "0.3.0")
    ? {
        cniVersion,
        interfaces: [
          { name: "eth0", mac: "0a:00:00:00:00:99" },
          { name: "eth0", mac: oldMac, sandbox: ns.path },
        ],
        ips: [{ version: "4", address: "10.1.2.3/24", interface: 1 }],
      }
    : { cniVersion, ip4: { ip: "10.1.2.3/24" } };

const confOf = (more: object = {}, cniVersion = "1.1.0") => ({
  cniVersion,
  name: "tuned",
  type: "tuning",
  dataDir,
  prevResult: prevResultOf(cniVersion),
  ...more,
});

const envOf = (command: string, env: Record<string, string> = {}) => ({
  CNI_COMMAND: command,
  CNI_CONTAINERID: "c1",
  CNI_NETNS: ns.path,
  CNI_IFNAME: "eth0",
  ...env,
});

const call = (command: string, conf: object | string, env: Record<string, string> = {}) =>
  runInProcess(tuning, { env: envOf(command, env), stdin: conf });

async function ok(command: string, conf: object | string, env: Record<string, string> = {}) {
  const outcome = await call(command, conf, env);
  expect(outcome.status, outcome.stdout).toBe(0);
  return outcome;
}

async function failure(command: string, conf: object | string, env: Record<string, string> = {}) {
  const { status, json } = await call(command, conf, env);
  expect(status).toBe(1);
  return json as { code: number; msg: string; details?: string };
}

function settings(): object {
  const [link] = ip(ns, "link", "show", "dev", "eth0");
  return {
    mac: link.address,
    mtu: link.mtu,
    txQLen: link.txqlen,
    promisc: link.flags.includes("PROMISC"),
    allmulti: link.flags.includes("ALLMULTI"),
  };
}

const sysctl = (key: string): string => ns.run("sysctl", "-n", key).trim();

const original = { mac: oldMac, mtu: 1500, txQLen: 1000, promisc: false, allmulti: false };
const wanted = { mac: "0a:00:00:00:00:02", mtu: 1400, txQLen: 77, promisc: true, allmulti: true };

const backups = (): string[] => (existsSync(dataDir) ? readdirSync(dataDir).sort() : []);
const backup = () => JSON.parse(readFileSync(join(dataDir, "c1_eth0.json"), "utf8"));

describe.each(specVersions)("cniVersion %s", (cniVersion) => {
  test("ADD changes everything, CHECK is content, DEL restores the interface", async () => {
    const own = {
      ...wanted,
      sysctl: { "net.ipv4.conf.IFNAME.arp_ignore": "1", "net.core.somaxconn": "500" },
    };
    const { json } = await ok("ADD", confOf(own, cniVersion));
    expect(settings()).toEqual(wanted);
    expect([sysctl("net.ipv4.conf.eth0.arp_ignore"), sysctl("net.core.somaxconn")]).toEqual(["1", "500"]);
    if (atLeast(cniVersion, "0.3.0"))
      expect(json.interfaces).toEqual([
        { name: "eth0", mac: "0a:00:00:00:00:99" },
        {
          name: "eth0",
          mac: wanted.mac,
          sandbox: ns.path,
          ...(atLeast(cniVersion, "1.0.0") ? { mtu: 1400 } : {}),
        },
      ]);
    else expect(json.ip4).toEqual({ ip: "10.1.2.3/24" });

    if (atLeast(cniVersion, "0.4.0")) await ok("CHECK", confOf(own, cniVersion));
    await ok("DEL", confOf(own, cniVersion));
    expect(settings()).toEqual(original);
    expect(sysctl("net.ipv4.conf.eth0.arp_ignore"), "the interface's own").toBe("0");
    expect(sysctl("net.core.somaxconn"), "the namespace's").toBe("500");
    expect(backups()).toEqual([]);
    await ok("DEL", confOf(own, cniVersion));
  });
});

test("the backup is the reference's file with our keys behind, for root's eyes only", async () => {
  await ok("ADD", confOf({ ...wanted, promisc: false, allmulti: false }));
  const path = join(dataDir, "c1_eth0.json");
  expect(readFileSync(path, "utf8")).toMatch(
    /^\{\n "mac": "0a:00:00:00:00:01",\n "mtu": 1500,\n "allmulti": false,\n "txQLen": 1000,\n "network": "tuned",/,
  );
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
});

test("nothing to change: nothing is written", async () => {
  await ok("ADD", confOf());
  await ok("ADD", confOf({ sysctl: { "net.core.somaxconn": "501" } }));
  expect([existsSync(dataDir), sysctl("net.core.somaxconn"), settings()]).toEqual([false, "501", original]);
});

describe("what is asked for", () => {
  test.each([
    ["the config's", {}, "", wanted.mac],
    ["CNI_ARGS over the config's", {}, "MAC=0a:00:00:00:00:03", "0a:00:00:00:00:03"],
    [
      "the capability over CNI_ARGS",
      { runtimeConfig: { mac: "0A-00-00-00-00-04" } },
      "MAC=0a:00:00:00:00:03",
      "0a:00:00:00:00:04",
    ],
    [
      "args.cni over all",
      { runtimeConfig: { mac: "0a:00:00:00:00:04" }, args: { cni: { mac: "0a:00:00:00:00:05" } } },
      "",
      "0a:00:00:00:00:05",
    ],
  ])("mac: %s", async (_, more, args, expected) => {
    await ok("ADD", confOf({ mac: wanted.mac, ...more }), { CNI_ARGS: args });
    expect(settings()).toMatchObject({ mac: expected });
    await ok("CHECK", confOf({ mac: wanted.mac, ...more }), { CNI_ARGS: args });
  });

  test("args.cni overrides each of the others, and brings sysctls where the config has none", async () => {
    const cni = {
      promisc: false,
      mtu: 1300,
      allmulti: false,
      txQLen: 5,
      sysctl: { "net.core.somaxconn": "9" },
    };
    await ok("ADD", confOf({ ...wanted, args: { cni } }));
    expect(settings()).toEqual({ mac: wanted.mac, mtu: 1300, txQLen: 5, promisc: false, allmulti: false });
    expect(sysctl("net.core.somaxconn")).toBe("9");
  });

  test("an interface with a dot in its name", async () => {
    ns.run("ip", "link", "set", "eth0", "down");
    ns.run("ip", "link", "set", "eth0", "name", "eth0.5");
    const env = { CNI_IFNAME: "eth0.5" };
    const conf = confOf({ sysctl: { "net.ipv4.conf.IFNAME.arp_ignore": "2" } });
    await ok("ADD", conf, env);
    expect(sysctl("net/ipv4/conf/eth0.5/arp_ignore")).toBe("2");
    await ok("CHECK", conf, env);
    await ok("DEL", conf, env);
    expect(sysctl("net/ipv4/conf/eth0.5/arp_ignore")).toBe("0");
  });

  test("a sysctl of several values, whatever is between them; one that can only be written", async () => {
    const own = { "net.ipv4.ip_local_port_range": "2000 60000", "net.ipv4.route.flush": "1" };
    await ok("ADD", confOf({ sysctl: own }));
    await ok("CHECK", confOf({ sysctl: own }));
    expect(sysctl("net.ipv4.ip_local_port_range")).toBe("2000\t60000");
  });
});

describe("ADD refuses", () => {
  const somaxconn = { "net.core.somaxconn": "1" };
  test.each([
    [{ sysctl: { "kernel.hostname": "x" } }, 7, 'invalid net sysctl key: "kernel.hostname"'],
    [{ sysctl: { net: "1" } }, 7, 'invalid net sysctl key: "net"'],
    [{ sysctl: { "": "1" } }, 7, 'invalid net sysctl key: ""'],
    [{ args: { cni: { sysctl: { "vm.overcommit": "1" } } } }, 7, 'invalid net sysctl key: "vm.overcommit"'],
    [{ sysctl: { "net.core.somaxconn": 1 } }, 6, "sysctl.net.core.somaxconn: 1 is not a string"],
    [{ sysctl: { ...somaxconn, "net/core/somaxconn": "2" } }, 7, "duplicated sysctl keys are not allowed"],
    [{ mac: "0a:00" }, 7, 'mac: "0a:00" is not a MAC address'],
    [{ mac: "01:00:5e:00:00:01" }, 7, 'mac: "01:00:5e:00:00:01" is a multicast address'],
    [{ mtu: -1 }, 7, "mtu: -1 is not between 0 and 2147483647"],
    [{ prevResult: undefined, mtu: 1400 }, 7, "Required prevResult missing"],
  ])("%j", async (more, code, msg) => {
    expect(await failure("ADD", confOf(more))).toMatchObject({ code, msg });
    expect([settings(), existsSync(dataDir)]).toEqual([original, false]);
  });

  test("a key that stands twice", async () => {
    const text = JSON.stringify(confOf({ sysctl: somaxconn }));
    const twice = text.replace('"sysctl":{', '"sysctl":{"net.core.somaxconn":"2",');
    expect(await failure("ADD", twice)).toMatchObject({
      code: 7,
      msg: "duplicated sysctl keys are not allowed",
      details: "net.core.somaxconn",
    });
    const escaped = text.replace('"sysctl":{', '"sysctl":{"net\\u002ecore.somaxconn":"2",');
    expect(await failure("ADD", escaped)).toMatchObject({ details: "net.core.somaxconn" });
    await ok("ADD", confOf({ sysctl: somaxconn, args: { cni: { sysctl: somaxconn } } }));
  });

  test("an interface that is not there", async () => {
    const error = await failure("ADD", confOf({ mtu: 1400 }), { CNI_IFNAME: "net7" });
    expect(error.msg).toBe('the container has no interface "net7"');
  });
});

describe("an ADD that fails takes everything back", () => {
  const good = { "net.ipv4.conf.IFNAME.arp_ignore": "1", "net.core.somaxconn": "500" };

  test("at a sysctl that is not there: before anything", async () => {
    const { msg } = await failure("ADD", confOf({ ...wanted, sysctl: { ...good, "net.core.none": "1" } }));
    expect(msg).toMatch(/^sysctl net.core.none: open .*no such file/);
    expect([settings(), backups(), sysctl("net.core.somaxconn")]).toEqual([
      original,
      [],
      expect.not.stringMatching("500"),
    ]);
  });

  test("at a sysctl that the kernel refuses: those before it", async () => {
    const before = sysctl("net.core.somaxconn");
    const { msg } = await failure(
      "ADD",
      confOf({ ...wanted, sysctl: { ...good, "net.ipv4.conf.all.arp_ignore": "none" } }),
    );
    expect(msg).toMatch(/^sysctl net.ipv4.conf.all.arp_ignore = "none": write .*invalid argument/);
    expect([settings(), backups()]).toEqual([original, []]);
    expect([sysctl("net.ipv4.conf.eth0.arp_ignore"), sysctl("net.core.somaxconn")]).toEqual(["0", before]);
  });

  test("at a setting that the kernel refuses: the others and the sysctls", async () => {
    const before = sysctl("net.core.somaxconn");
    const { msg } = await failure("ADD", confOf({ ...wanted, mtu: 70000, sysctl: good }));
    expect(msg).toMatch(/^mtu: eth0 cannot be given 70000: RTM_NEWLINK/);
    expect([settings(), backups()]).toEqual([original, []]);
    expect([sysctl("net.ipv4.conf.eth0.arp_ignore"), sysctl("net.core.somaxconn")]).toEqual(["0", before]);
  });

  test("to what the ADD before it left, whose backup stays", async () => {
    await ok("ADD", confOf(wanted));
    const first = backup();
    await failure("ADD", confOf({ ...wanted, mtu: 70000, mac: "0a:00:00:00:00:07" }));
    expect([settings(), backup()]).toEqual([wanted, first]);
  });

  test("when the backup cannot be written, before anything is changed", async () => {
    writeFileSync(join(data.path, "file"), "");
    const { msg } = await failure("ADD", confOf({ ...wanted, dataDir: join(data.path, "file", "x") }));
    expect(msg).toContain("not a directory");
    expect(settings()).toEqual(original);
  });
});

test("a second ADD keeps the values of before the first", async () => {
  await ok("ADD", confOf({ mtu: 1400 }));
  await ok("ADD", confOf({ mtu: 1300, mac: wanted.mac }));
  expect(settings()).toMatchObject({ mtu: 1300, mac: wanted.mac });
  await ok("DEL", confOf({ mtu: 1300, mac: wanted.mac }));
  expect(settings()).toEqual(original);
});

test("a backup of another interface, left by a container that had the id before, restores nothing", async () => {
  await ok("ADD", confOf({ mac: wanted.mac }));
  ns.close();
  ns = newContainer();
  ns.run("ip", "link", "set", "eth0", "address", "0a:00:00:00:00:0b");
  await ok("DEL", confOf());
  expect([settings(), backups()]).toEqual([{ ...original, mac: "0a:00:00:00:00:0b" }, []]);

  await ok("ADD", confOf({ mac: wanted.mac }));
  ns.close();
  ns = newContainer();
  ns.run("ip", "link", "set", "eth0", "mtu", "1450");
  await ok("ADD", confOf({ mac: wanted.mac, mtu: 1400 }));
  expect(backup()).toMatchObject({ mac: oldMac, mtu: 1450 });
  await ok("DEL", confOf());
  expect(settings()).toEqual({ ...original, mtu: 1450 });
});

describe("DEL", () => {
  test.each([
    ["no namespace is given", { CNI_NETNS: "" }, () => {}],
    ["the namespace is gone", { CNI_NETNS: "/run/netns/tscni-no-such" }, () => {}],
    ["the interface is gone", {}, () => ns.run("ip", "link", "del", "eth0")],
    ["the backup is empty", {}, () => writeFileSync(join(dataDir, "c1_eth0.json"), "")],
    ["the backup is nonsense", {}, () => writeFileSync(join(dataDir, "c1_eth0.json"), '{"mtu":"x"}')],
    ["there is no prevResult", {}, () => {}, { prevResult: undefined } as object],
  ])("removes the backup when %s", async (_, env, spoil, more: object = {}) => {
    await ok("ADD", confOf({ ...wanted, sysctl: { "net.ipv4.conf.IFNAME.arp_ignore": "1" } }));
    spoil();
    await ok("DEL", confOf({ ...wanted, ...more }), env);
    expect(backups()).toEqual([]);
  });

  test("restores all that it can, warns of the rest and lets go", async () => {
    await ok("ADD", confOf(wanted));
    writeFileSync(join(dataDir, "c1_eth0.json"), JSON.stringify({ ...backup(), mtu: 1000000 }));
    const { stderr } = await ok("DEL", confOf());
    expect(stderr).toContain("cannot restore eth0: RTM_NEWLINK");
    expect(settings()).toEqual({ ...original, mtu: 1400 });
    expect(backups()).toEqual([]);
  });

  test("does not mind what the config says of anything but the folder", async () => {
    await ok("ADD", confOf(wanted));
    await ok("DEL", confOf({ mtu: "x", mac: 5, sysctl: { "kernel.x": "1" }, txQLen: -4 }));
    expect(settings()).toEqual(original);
    expect(await failure("DEL", confOf({ dataDir: 5 }))).toMatchObject({ code: 6 });
  });
});

describe("CHECK finds", () => {
  test.each([
    [
      "mac",
      () => ns.run("ip", "link", "set", "eth0", "address", oldMac),
      /^mac of eth0 is 0a:00:00:00:00:01, not/,
    ],
    ["mtu", () => ns.run("ip", "link", "set", "eth0", "mtu", "1401"), /^mtu of eth0 is 1401, not 1400/],
    ["txQLen", () => ns.run("ip", "link", "set", "eth0", "txqueuelen", "3"), /^txQLen of eth0 is 3, not 77/],
    ["promisc", () => ns.run("ip", "link", "set", "eth0", "promisc", "off"), /^promisc of eth0 is false/],
    [
      "allmulti",
      () => ns.run("ip", "link", "set", "eth0", "allmulticast", "off"),
      /^allmulti of eth0 is false/,
    ],
    [
      "sysctl",
      () => ns.run("sysctl", "-w", "net.core.somaxconn=4"),
      /^sysctl net.core.somaxconn is "4", not "500"/,
    ],
    ["interface", () => ns.run("ip", "link", "del", "eth0"), /^the container has no interface "eth0"/],
  ])("another %s", async (_, change, message) => {
    const conf = confOf({ ...wanted, sysctl: { "net.core.somaxconn": "500" } });
    await ok("ADD", conf);
    await ok("CHECK", { ...conf, mac: wanted.mac.toUpperCase() });
    change();
    expect((await failure("CHECK", conf)).msg).toMatch(message);
  });

  test("promiscuous mode that nobody asked for", async () => {
    await ok("CHECK", confOf());
    ns.run("ip", "link", "set", "eth0", "promisc", "on");
    expect((await failure("CHECK", confOf())).msg).toBe("promisc of eth0 is true, not false");
  });

  test("no prevResult", async () => {
    expect((await failure("CHECK", confOf({ prevResult: undefined }))).msg).toBe(
      "Required prevResult missing",
    );
  });
});

describe("GC", () => {
  const gc = (valid: object[] | undefined) =>
    ok("GC", confOf(valid === undefined ? {} : { "cni.dev/valid-attachments": valid }), { CNI_NETNS: "" });

  test("removes the backups of this network's attachments that are not listed, and says so", async () => {
    await ok("ADD", confOf({ mtu: 1400 }));
    await ok("ADD", confOf({ mtu: 1400 }), { CNI_CONTAINERID: "c2" });
    await ok("ADD", confOf({ mtu: 1400, name: "other" }), { CNI_CONTAINERID: "c3" });
    writeFileSync(join(dataDir, "c4_eth0.json"), '{\n "mtu": 1500\n}'); // the reference's
    writeFileSync(join(dataDir, "c5_eth0.json.tmp"), '{"network":"tuned"}');
    writeFileSync(join(dataDir, "notes"), '{"network":"tuned"}');
    const kept = ["c2_eth0.json", "c3_eth0.json", "c4_eth0.json", "notes"];
    expect((await gc(undefined)).stderr, "nobody said").toBe("");
    expect(backups()).toHaveLength(6);
    const { stderr, stdout } = await gc([{ containerID: "c2", ifname: "eth0" }]);
    expect(stdout).toBe("");
    expect(stderr.trim().split("\n").sort()).toEqual([
      `tuning: gc: removed backup ${dataDir}/c1_eth0.json`,
      `tuning: gc: removed backup ${dataDir}/c5_eth0.json.tmp`,
    ]);
    expect(backups()).toEqual(kept);
  });

  test("has nothing to do without a folder", async () => {
    expect((await gc([])).stderr).toBe("");
  });
});

describe("STATUS", () => {
  test("is good where the folder is one, or can be made", async () => {
    await ok("STATUS", confOf(), { CNI_NETNS: "" });
    mkdirSync(dataDir, { recursive: true });
    await ok("STATUS", confOf(), { CNI_NETNS: "" });
  });

  test("is 50 when backups have no place, and when ADD would refuse the sysctls", async () => {
    writeFileSync(join(data.path, "file"), "");
    const path = join(data.path, "file");
    expect(await failure("STATUS", confOf({ dataDir: path }))).toMatchObject({
      code: 50,
      msg: `dataDir: ${path} is not a folder`,
    });
    expect(await failure("STATUS", confOf({ sysctl: { "kernel.x": "1" } }))).toMatchObject({ code: 50 });
  });
});

describe("the allowlist", () => {
  /** Runs a verb where /etc holds nothing but this list. */
  async function withList(lines: string, command: string, conf: object) {
    const list = join(data.path, "list");
    writeFileSync(list, lines);
    chmodSync(list, 0o644);
    const folder = "/etc/cni/tuning";
    const script = `mount -t tmpfs t /etc && mkdir -p ${folder} && cp "$1" ${folder}/allowlist.conf && exec "$2"`;
    return runPlugin({
      bin: "/usr/bin/unshare",
      args: ["-m", "sh", "-c", script, "sh", list, join(distBin, "tuning")],
      env: envOf(command),
      stdin: conf,
    });
  }
  const list = "\n  ^net\\.core\\.somax\n(?i)ARP_\n";

  test.each(["net.core.somaxconn", "net.ipv4.conf.IFNAME.arp_ignore"])("lets %s through", async (key) => {
    const outcome = await withList(list, "ADD", confOf({ sysctl: { [key]: "2" } }));
    expect(outcome.status, outcome.stdout).toBe(0);
    expect(sysctl(key.replace("IFNAME", "eth0"))).toBe("2");
  });

  test.each(["ADD", "STATUS"])("refuses what it does not have at %s", async (verb) => {
    const before = sysctl("net.core.optmem_max");
    const { status, json } = await withList(list, verb, confOf({ sysctl: { "net.core.optmem_max": "9" } }));
    expect(status).toBe(1);
    expect(json).toMatchObject({
      code: verb === "ADD" ? 7 : 50,
      msg: "Sysctl net.core.optmem_max is not allowed. Only the following sysctls are allowed: [^net\\.core\\.somax (?i)ARP_]",
    });
    expect(sysctl("net.core.optmem_max")).toBe(before);
  });

  test.each(["net.(", "net[[:alpha:]]"])("that has %s is an error, not a list", async (line) => {
    const { json } = await withList(line, "ADD", confOf({ sysctl: { "net.core.somaxconn": "2" } }));
    expect(json.msg).toBe(
      `/etc/cni/tuning/allowlist.conf: ${JSON.stringify(line)} is not a regular expression`,
    );
    const without = await withList(line, "ADD", confOf({ mtu: 1400 }));
    expect(without.status, "without sysctls it does not matter").toBe(0);
  });
});
