import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { envOf, type PluginOutcome, runPlugin } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type Attached,
  type Backend,
  backends,
  type Lab,
  makeLab,
  port,
  recordsOf,
  traces,
} from "./testing.ts";

// What goes wrong: tools that are missing, fail or die, hostile configs, kills at any moment.

let lab: Lab;
/** A folder that is all of PATH, with links to the real tools until a test puts something else there. */
let path: string;
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), "tscni-tools-"));
  for (const name of tools) symlinkSync(Bun.which(name)!, join(path, name));
});
afterEach(() => {
  lab?.close();
  rmSync(path, { recursive: true });
});

const tools = ["iptables-save", "iptables-restore", "ip6tables-save", "ip6tables-restore", "nft"];

/** Programs that can't be started, wherever they are. */
let hidden: string[] = [];
beforeEach(() => {
  hidden = [];
});
const hide = (...names: string[]) => {
  hidden = [...new Set(names.map((name) => realpathSync(Bun.which(name)!)))];
};

function replace(name: string, script: string): void {
  rmSync(join(path, name));
  writeFileSync(join(path, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(path, name), 0o755);
}

const callOf = (
  name: string,
  { conf, ns, id, ifName }: Attached,
  env: object = {},
): Promise<PluginOutcome> => {
  const mounts = hidden.map((file) => `mount --bind /dev/null ${file}`);
  return runPlugin({
    bin: "/usr/bin/unshare",
    args: ["-m", "/bin/sh", "-c", [...mounts, 'exec "$0" "$@"'].join(" && "), ...lab.node.command("portmap")],
    env: { ...envOf(name, { netns: ns, id, ifName }), PATH: `${path}:/usr/bin:/bin`, ...env },
    stdin: conf,
  });
};

async function failure(
  name: string,
  attached: Attached,
  env?: object,
): Promise<{ code: number; msg: string }> {
  const { status, json, stdout } = await callOf(name, attached, env);
  expect(status, stdout).toBe(1);
  return json;
}

const nothing = () => expect([traces(lab.node), recordsOf(lab.networkName())]).toEqual([[], []]);
const ports = [port(8080), port(8081, 80, { protocol: "udp" })];
const writer = (backend: Backend) => (backend === "iptables" ? "iptables-restore" : "nft");
const restore = (name: string) => {
  rmSync(join(path, name), { force: true });
  symlinkSync(Bun.which(name)!, join(path, name));
};

describe.each(backends)("with %s", (backend) => {
  let c: Attached;
  beforeEach(async () => {
    lab = makeLab(backend);
    c = await lab.connect({}, ports);
  });

  test("the tools are missing: ADD says what to install and leaves nothing, STATUS says 50", async () => {
    hide(...tools);
    const missing =
      backend === "iptables"
        ? "iptables-save is missing: install the package iptables"
        : "nft is missing: install the package nftables";
    const { code, msg } = await failure("ADD", c);
    expect([code, msg]).toEqual([999, expect.stringContaining(missing)]);
    expect(await failure("STATUS", { ...c, conf: { ...c.conf, prevResult: undefined } })).toMatchObject({
      code: 50,
    });
    expect((await callOf("DEL", c)).status).toBe(0);
    nothing();
  });

  test("the tool fails: so does ADD, in its words, and leaves nothing", async () => {
    replace(writer(backend), "echo 'something is broken' >&2; exit 3");
    expect((await failure("ADD", c)).msg).toContain("something is broken");
    restore(writer(backend));
    nothing();
    expect((await callOf("DEL", c)).status).toBe(0);
  });

  test("the tool dies, before or after its work: nothing stays after ADD's error, or after DEL", async () => {
    const real = Bun.which(writer(backend))!;
    for (const script of ["kill -9 $$", `${real} "$@"; kill -9 $$`]) {
      replace(writer(backend), script);
      // One that has done its work may be found to have done it.
      const { status, json } = await callOf("ADD", c);
      if (status !== 0 || script === "kill -9 $$") expect(json.msg).toContain("was ended by signal 9");
      restore(writer(backend));
      expect((await callOf("DEL", c)).status).toBe(0);
      nothing();
    }
  });

  if (backend === "iptables")
    test("IPv6 fails after IPv4 was done: that is taken back", async () => {
      replace("ip6tables-restore", 'case $(cat) in *"-j DNAT"*) echo "no luck" >&2; exit 3;; esac');
      expect((await failure("ADD", c)).msg).toContain("no luck");
      restore("ip6tables-restore");
      nothing();
    });

  test("the sysctl can't be written: the ports are taken back", async () => {
    lab.node.host.run("sysctl", "-qw", "net.ipv4.conf.brpm0.route_localnet=0");
    const [tool = "", ...args] = lab.node.command("portmap");
    const { status, json } = await runPlugin({
      bin: "/usr/bin/unshare",
      args: [
        "-m",
        "sh",
        "-c",
        'mount -o remount,ro,bind /proc/sys || mount --bind -o ro /proc/sys /proc/sys; exec "$0" "$@"',
        tool,
        ...args,
      ],
      env: envOf("ADD", { netns: c.ns, id: c.id }),
      stdin: c.conf,
    });
    expect(status).toBe(1);
    expect(json.msg).toMatch(/^unable to enable route_localnet: .*read-only/i);
    nothing();
  });

  test("DEL that fails can be repeated", async () => {
    expect((await callOf("ADD", c)).status).toBe(0);
    replace(writer(backend), "exit 1");
    await failure("DEL", c);
    expect(recordsOf(lab.networkName())).toEqual(["c1:eth0"]);
    restore(writer(backend));
    expect((await callOf("DEL", c)).status).toBe(0);
    nothing();
  });

  test("killed at any moment of ADD: DEL leaves nothing; of DEL: so does the next", async () => {
    const whole = (await callOf("ADD", c)).ms;
    await callOf("DEL", c);
    nothing();
    for (let i = 0; i < 24; i++) {
      for (const name of i % 2 ? ["ADD"] : ["ADD", "DEL"]) {
        if (i % 2 === 0 && name === "ADD") {
          expect((await callOf("ADD", c)).status).toBe(0);
          continue;
        }
        const [tool = "", ...args] = lab.node.command("portmap");
        const child = Bun.spawn([tool, ...args], {
          env: {
            ...(envOf(name, { netns: c.ns, id: c.id }) as Record<string, string>),
            PATH: process.env.PATH!,
          },
          stdin: new TextEncoder().encode(JSON.stringify(c.conf)),
          stdout: "ignore",
          stderr: "ignore",
        });
        Bun.sleepSync(1 + (i / 24) * whole * 1.2);
        child.kill("SIGKILL");
        await child.exited;
      }
      expect((await callOf("DEL", c)).status, `kill ${i}`).toBe(0);
      nothing();
    }
  });

  test.each<[string, object]>([
    [
      "a condition with a command",
      {
        conditionsV4: backend === "iptables" ? ["-s", "10.0.0.1", "-j", "ACCEPT"] : ["accept; flush ruleset"],
      },
    ],
    [
      "a condition with a line",
      {
        conditionsV6:
          backend === "iptables" ? ["-s", "::1\n-F PREROUTING"] : ["ip6 saddr ::1\nflush ruleset"],
      },
    ],
    [
      "a condition that ends the rule",
      { conditionsV4: backend === "iptables" ? ["-s", "10.0.0.1", "--"] : ["ip saddr 10.0.0.1 accept #"] },
    ],
    ["a protocol", { runtimeConfig: { portMappings: [port(1, 1, { protocol: "tcp -j ACCEPT" })] } }],
    ["an address", { runtimeConfig: { portMappings: [port(1, 1, { hostIP: "10.0.0.1 -j ACCEPT" })] } }],
    ["a port", { runtimeConfig: { portMappings: [{ ...port(1), hostPort: "1 -j ACCEPT" }] } }],
    ["a chain", { externalSetMarkChain: "X\nCOMMIT" }],
  ])("hostile: %s is refused before anything starts", async (_, own) => {
    for (const name of tools) replace(name, "touch /run/tscni-started; exit 1");
    const { code } = await failure("ADD", { ...c, conf: { ...c.conf, ...own } });
    expect([6, 7]).toContain(code);
    for (const name of tools) restore(name);
    nothing();
  });

  test("a condition that neither tool can read is their error, and leaves nothing", async () => {
    const own = { conditionsV4: backend === "iptables" ? ["-m", "nonesuch", "--what"] : ["no such thing"] };
    expect((await failure("ADD", { ...c, conf: { ...c.conf, ...own } })).msg).toMatch(
      /^(iptables-restore|nft): /,
    );
    nothing();
  });

  test("the longest names there are", async () => {
    const id = "c".repeat(200);
    const name = "n".repeat(120);
    const long = { ...c, id, conf: { ...c.conf, name } };
    for (const verb of ["ADD", "CHECK", "DEL"]) {
      const { status, stdout } = await callOf(verb, long);
      expect(status, stdout).toBe(0);
    }
    expect(traces(lab.node)).toEqual([]);
  });
});

describe("which backend, when nobody says", () => {
  beforeEach(() => {
    lab = makeLab("iptables", { backend: undefined });
  });

  test("nftables where iptables is missing", async () => {
    hide(...tools.slice(0, 4));
    const c = await lab.connect({}, ports);
    for (const verb of ["ADD", "CHECK"]) expect((await callOf(verb, c)).status).toBe(0);
    expect(traces(lab.node).join()).toContain("tscni_portmap any4");
    await callOf("STATUS", c).then(({ status }) => expect(status).toBe(0));
    expect((await callOf("DEL", c)).status).toBe(0);
    nothing();
  });

  test("neither: the error is about iptables, and nothing stays", async () => {
    hide(...tools);
    const c = await lab.connect({}, ports);
    expect((await failure("ADD", c)).msg).toContain("install the package iptables");
    expect((await failure("STATUS", c)).code).toBe(50);
    nothing();
  });

  test("a table that iptables can't read: nftables", async () => {
    lab.node.host.run(
      "nft",
      "add table ip nat; add chain ip nat x { type nat hook prerouting priority -100; }; add rule ip nat x tcp dport { 1, 2 } dnat to 10.0.0.1 random",
    );
    const c = await lab.connect({}, ports);
    const { status, stdout } = await callOf("ADD", c);
    expect(status, stdout).toBe(0);
    expect((await callOf("DEL", c)).status).toBe(0);
    nothing();
  });
});

const legacy = Bun.which("xtables-legacy-multi");
describe.skipIf(!legacy)("with iptables-legacy", () => {
  beforeEach(() => {
    for (const name of tools.slice(0, 4)) {
      rmSync(join(path, name));
      symlinkSync(legacy!, join(path, name));
    }
    lab = makeLab("iptables");
  });

  const saved = () =>
    ["iptables-save", "ip6tables-save"].flatMap((name) =>
      lab.node.host
        .run(join(path, name), "-t", "nat")
        .split("\n")
        .filter((line) => line.includes("CNI-DN-")),
    );

  test("ADD, CHECK, DEL; a conflict; what has no record", async () => {
    const c = await lab.connect({}, ports);
    for (const verb of ["ADD", "CHECK"]) {
      const { status, stdout } = await callOf(verb, c);
      expect(status, stdout).toBe(0);
    }
    lab.serve(c, "tcp4", 80);
    expect(lab.ask(lab.outside, "tcp4", "192.0.2.1", 8080)).toBe("c1 192.0.2.2");
    const second = await lab.connect({ id: "c2" }, [port(8080)]);
    expect((await failure("ADD", second)).msg).toContain("is taken by container c1");
    rmSync(`/run/tscni/portmap/${lab.networkName()}`, { recursive: true });
    expect(saved()).not.toEqual([]);
    expect((await callOf("DEL", c)).status).toBe(0);
    expect(saved()).toEqual([]);
  });

  test("another program that holds the lock for a moment is waited for", async () => {
    const c = await lab.connect({}, ports);
    const lock = join(path, "lock");
    mkdirSync(path, { recursive: true });
    const holder = Bun.spawn(["flock", lock, "sleep", "0.7"]);
    while (Bun.spawnSync(["flock", "-n", lock, "true"]).exitCode === 0) Bun.sleepSync(5);
    const { status, stdout, ms } = await callOf("ADD", c, { XTABLES_LOCKFILE: lock });
    expect(status, stdout).toBe(0);
    expect(ms).toBeGreaterThan(300);
    await holder.exited;
    expect((await callOf("DEL", c, { XTABLES_LOCKFILE: lock })).status).toBe(0);
    expect(saved()).toEqual([]);
  });
});
