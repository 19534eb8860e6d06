import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { containerIdOf } from "./runtime.ts";

/*
 * Every command line here goes to both tools, each in namespaces of its own with an empty /var/lib/cni, so that
 * paths, and with them container ids and cache file names, are the same. The plugins are Go's.
 */

/** Go's cnitool v1.3.1 and plugins v1.9.1. */
const goBin = "/tmp/gobin";
const goTool = join(goBin, "cnitool");
const ownTool = [process.execPath, join(import.meta.dirname, "bin.ts")];

interface Step {
  /** Which cnitool runs. */
  tool: "go" | "own";
  args: string;
  env?: Record<string, string>;
}

interface Outcome {
  status: string;
  stdout: string;
  stderr: string;
  /** The files of the cache after this step, with their names. */
  cache: string;
}

let dir: string;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "cnitool-go-"));
  for (const name of ["conf", "empty", "bin"]) mkdirSync(join(dir, name));
  writeFileSync(join(dir, "bin", "fails"), failing, { mode: 0o755 });
  const conflists: Record<string, object> = {
    net: {
      cniVersion: "1.0.0",
      name: "net",
      plugins: [
        {
          type: "bridge",
          bridge: "cnitool-go0",
          isGateway: true,
          capabilities: { mac: true },
          ipam: {
            type: "host-local",
            ranges: [[{ subnet: "10.33.0.0/24" }], [{ subnet: "fd33::/64" }]],
            dataDir: join(dir, "leases"),
            routes: [{ dst: "0.0.0.0/0" }],
          },
          dns: { domain: "a<b>&c" },
        },
      ],
    },
    net03: { cniVersion: "0.3.1", name: "net03", plugins: [bridge("03", "10.34.0.0/24")] },
    lo11: { cniVersion: "1.1.0", name: "lo11", plugins: [{ type: "loopback" }] },
    old: { name: "old", plugins: [bridge("01", "10.35.0.0/24")] },
    missing: { cniVersion: "1.0.0", name: "missing", plugins: [{ type: "loopback" }, { type: "gone" }] },
    fails: {
      cniVersion: "1.1.0",
      name: "fails",
      plugins: [{ type: "loopback" }, { type: "fails", name: "f" }],
    },
  };
  for (const [name, conflist] of Object.entries(conflists))
    writeFileSync(join(dir, "conf", `${name}.conflist`), JSON.stringify(conflist));
  const single = { cniVersion: "0.4.0", name: "single", ...bridge("04", "10.36.0.0/24") };
  writeFileSync(join(dir, "conf", "single.conf"), JSON.stringify(single));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const bridge = (suffix: string, subnet: string) => ({
  type: "bridge",
  bridge: `cnitool-go${suffix}`,
  ipam: { type: "host-local", subnet, dataDir: join(dir, "leases") },
});

const failing = `#!/bin/sh
case $CNI_COMMAND in
  VERSION) exec echo '{"cniVersion":"1.1.0","supportedVersions":["1.1.0"]}' ;;
  DEL | GC) exit 0 ;;
esac
echo note >&2
echo '{"code":11,"msg":"not now","details":"'$CNI_COMMAND'"}'
exit 1
`;

/**
 * Runs the steps one after the other in namespaces of their own, with an empty /var/lib/cni and a network
 * namespace at DIR/ns, the same path every time.
 */
function play(steps: readonly Step[]): Outcome[] {
  const script = [
    "set -eu",
    "mount -t tmpfs tmpfs /var/lib && mkdir /var/lib/cni",
    `rm -rf ${dir}/leases && touch ${dir}/ns && unshare --net=${dir}/ns true`,
    `cd ${dir}`,
    ...steps.map(({ tool, args, env = {} }, i) => {
      const variables = { CNI_PATH: `${goBin}:${dir}/bin`, NETCONFPATH: `${dir}/conf`, ...env };
      const words = Object.entries(variables).map(([name, value]) => `${name}=${quoted(value)}`);
      const command = tool === "go" ? goTool : ownTool.map(quoted).join(" ");
      return `status=0; env ${words.join(" ")} ${command} ${args} >${i}.stdout 2>${i}.stderr || status=$?
echo $status >${i}.status
{ cd /var/lib/cni/results 2>/dev/null && for f in *; do [ ! -f "$f" ] || { echo "$f"; cat "$f"; echo; }; done; cd ${dir}; } >${i}.cache`;
    }),
    `umount ${dir}/ns`,
  ];
  const ran = spawnSync("unshare", ["-nm", "sh", "-c", script.join("\n")], { encoding: "utf8" });
  expect(ran.stderr).toBe("");
  expect(ran.status).toBe(0);
  const read = (i: number, what: string) => readFileSync(join(dir, `${i}.${what}`), "utf8");
  return steps.map((_, i) => ({
    status: read(i, "status").trim(),
    stdout: read(i, "stdout"),
    stderr: read(i, "stderr"),
    cache: read(i, "cache"),
  }));
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Without what the Go plugins choose at random: MAC addresses and names of veths. */
const steady = (text: string): string =>
  text.replace(/(?:[0-9a-f]{2}:){5}[0-9a-f]{2}/g, "MAC").replace(/veth[0-9a-f]{8}/g, "VETH");

/** Without the records of failed ADDs, which Go's libcni does not keep. */
const whole = (cache: string): string => cache.replace(/^.*\n.*"failed":.*\n/gm, "");

describe.skipIf(!existsSync(goTool))("beside Go's cnitool", () => {
  test("the same commands give the same stdout, status, first line of stderr and cache", () => {
    const ns = `${dir}/ns`;
    const lines: [args: string, env?: Record<string, string>][] = [
      [`add net ${ns}`],
      [`check net ${ns}`],
      [`status net ${ns}`],
      [`add net ${ns}`],
      [`add net ns -i net1`],
      [
        `add net ns --ifname=net2`,
        { CNI_ARGS: "IgnoreUnknown=1;X=Y", CAP_ARGS: '{"mac":"02:00:00:00:00:07","x":1}' },
      ],
      [`add net ./x/../ns`, { CNI_IFNAME: "net3" }],
      [`check net ${ns} -i net2`],
      [`del net ${ns} -inet1`],
      [`del net ${ns} -inet1`],
      [`gc net ${ns}`],
      [`add net03 ${ns} -i e03`],
      [`check net03 ${ns} -i e03`],
      [`add old ${ns} -i e01`],
      [`del old ${ns} -i e01`],
      [`add single ${ns} -i e04`],
      [`check single ${ns} -i e04`],
      [`del single ${ns} -i e04`],
      [`add lo11 ${ns} extra words`],
      [`status lo11 ${ns}`],
      [`gc lo11 ${ns}`],
      [`del net03 ${ns} -i e03`],
      [`del net /no/such/netns`],
      [`add`],
      [`add net`],
      [`check net`],
      [`add net ${ns} --bogus`],
      [`add -x net ${ns}`],
      [`add net ${ns} --ifname`],
      [`add net ${ns} -i`],
      [`add nonet ${ns}`],
      [`add net ${ns}`, { NETCONFPATH: "empty" }],
      [`del net ${ns}`, { NETCONFPATH: "/no/such/dir" }],
      [`add net ${ns}`, { CNI_PATH: "" }],
      [`add net ${ns}`, { CNI_PATH: "/nope:/b" }],
      [`add net ${ns}`, { CNI_ARGS: "a" }],
      [`add net ${ns}`, { CNI_ARGS: 'a="=' }],
      [`status net ${ns}`, { CNI_ARGS: "a=b;" }],
      [`add net /no/such/netns`],
      [`status fails ${ns}`],
      [`bogus`],
    ];
    const go = play(lines.map(([args, env]) => ({ tool: "go", args, ...(env && { env }) })));
    const own = play(lines.map(([args, env]) => ({ tool: "own", args, ...(env && { env }) })));
    const firstLine = (text: string) => text.split("\n")[0]!;
    const lastLine = (text: string) =>
      text.includes("unknown command") ? "" : text.trimEnd().split("\n").at(-1)!;
    for (const [i, [args]] of lines.entries()) {
      const seen = ({ status, stdout, stderr, cache }: Outcome) => ({
        args,
        status,
        stdout: steady(stdout),
        stderr: steady(firstLine(stderr)),
        lastLine: steady(lastLine(stderr)),
        cache: steady(whole(cache)),
      });
      expect(seen(own[i]!)).toEqual(seen(go[i]!));
    }
  });

  test("help and --help go to stdout with status 0, an unknown command is status 1", () => {
    for (const args of ["", "-h", "help", "help add", "add -h", "help bogus", "bogus", "ad x y", "--bogus"]) {
      const [go, own] = play([
        { tool: "go", args },
        { tool: "own", args },
      ]) as [Outcome, Outcome];
      const where = ({ status, stdout, stderr }: Outcome) => [
        args,
        status,
        stdout !== "",
        stderr.split("\n")[0],
      ];
      expect(where(own)).toEqual(where(go));
    }
  });

  test.each([
    ["go", "own"],
    ["own", "go"],
  ] as const)("what %s's tool added, %s's checks, and takes off", (adds, takes) => {
    const env = { CNI_ARGS: "IgnoreUnknown=1;X=Y", CAP_ARGS: '{"mac":"02:00:00:00:00:07"}' };
    const outcomes = play([
      { tool: adds, args: "add net ns", env },
      { tool: takes, args: "check net ns", env },
      { tool: takes, args: "del net ns", env },
      { tool: adds, args: "add net ns", env },
      { tool: takes, args: "gc net ns" },
    ]);
    expect(outcomes.map(({ status, stderr }) => [status, stderr])).toEqual(Array(5).fill(["0", ""]));
    expect(outcomes.map(({ cache }) => cache !== "")).toEqual([true, true, false, true, false]);
    expect(outcomes[0]!.cache).toContain(`net-${containerIdOf(`${dir}/ns`)}-eth0`);
  });

  test.each(["del fails ns", "gc fails ns"])(
    "an ADD that failed in the middle: Go's %s finishes it",
    (args) => {
      const [added, finished] = play([
        { tool: "own", args: "add fails ns" },
        { tool: "go", args },
      ]) as [Outcome, Outcome];
      expect(added.status).toBe("1");
      expect(added.stderr.split("\n")[0]).toBe(
        'Error: plugin type="fails" name="f" failed (add): not now; ADD',
      );
      expect(added.cache).toContain(`fails-${containerIdOf(`${dir}/ns`)}-eth0`);
      expect(finished).toEqual({ status: "0", stdout: "", stderr: "", cache: "" });
    },
  );
});
