import { cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";
import { prints } from "../libcni/testing/lab.ts";
import { type Call, codeIn, folderBeside, NetworkingLab, runExample } from "./testing.ts";

/* docs/go-cni.md: both programs are run, with the same plugins. */

const page = join(root, "docs/go-cni.md");
let folder: string;

let lab: NetworkingLab;
beforeEach(() => {
  lab = new NetworkingLab();
  folder = folderBeside(import.meta.dirname);
  const loopback = { cniVersion: "0.3.1", interfaces: [{ name: "lo", sandbox: "/run/netns/c1" }] };
  lab.plugin("loopback", {
    VERSION: prints({ cniVersion: "1.1.0", supportedVersions: ["0.3.1", "0.4.0", "1.1.0"] }),
    ADD: `if grep -q 0.3.1 <<END\n$in\nEND\nthen ${prints(loopback)}; else ${prints({ ...loopback, cniVersion: "0.4.0" })}; fi`,
  });
  const result = {
    cniVersion: "1.1.0",
    interfaces: [{ name: "cni0" }, { name: "eth0", mac: "02:00:00:00:00:01", sandbox: "/run/netns/c1" }],
    ips: [
      { interface: 1, address: "10.1.0.2/24", gateway: "10.1.0.1" },
      { interface: 1, address: "fd00::2/64", gateway: "fd00::1" },
    ],
    routes: [{ dst: "0.0.0.0/0", gw: "10.1.0.1", mtu: 1400 }],
    dns: { nameservers: ["10.0.0.53"] },
  };
  lab.plugin("bridge", { ADD: prints(result) });
  lab.plugin("portmap", { ADD: prints(result) });
  const plugins = [
    { type: "bridge", ipam: { type: "host-local", subnet: "10.1.0.0/24" }, dns: { domain: "x.test" } },
    { type: "portmap", snat: true, capabilities: { portMappings: true }, bandwidth: { b: "<1>", a: 2 } },
  ];
  const list = JSON.stringify({ cniVersion: "1.1.0", name: "mynet", plugins }, undefined, 2);
  writeFileSync(join(lab.configDir, "10-mynet.conflist"), list);
});
afterEach(() => {
  lab.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Builds and runs the Go program, its cache in a place of its own. Undefined where there is no Go, or no module. */
function runGo(code: string): string[] | undefined {
  if (!Bun.which("go")) return undefined;
  cpSync(join(import.meta.dirname, "testing/go-cni"), folder, { recursive: true });
  writeFileSync(join(folder, "main.go"), code);
  const program = join(folder, "go-program");
  const build = Bun.spawnSync(["go", "build", "-o", program, "."], { cwd: folder, timeout: 240_000 });
  const said = build.stderr.toString();
  if (build.exitCode !== 0 && /dial tcp|no such host|module lookup disabled/.test(said)) return undefined;
  expect(said.replace(/^go: downloading .*\n/gm, "")).toBe("");
  // go-cni has no option for the cache: it is /var/lib/cni, here a folder that only this process sees.
  const run = Bun.spawnSync(["unshare", "-m", "sh", "-c", `mount -t tmpfs t /var/lib && exec ${program}`]);
  expect(run.stderr.toString()).toMatch(/^[^\n]* "0\.3\.1" does not support the CHECK command\n$/);
  return run.stdout.toString().trimEnd().split("\n");
}

/** What a plugin was told, as far as it is the same: the two have capabilities in other letters, by design. */
const told = (calls: readonly Call[]) =>
  calls
    .map(({ verb, plugin, containerId, ifName, netns, args, stdin }) => ({
      verb,
      plugin,
      containerId,
      ifName,
      netns,
      args,
      name: stdin.name,
      portMappings: JSON.stringify(stdin.runtimeConfig ?? {})
        .toLowerCase()
        .replace(',"hostip":""', ""),
    }))
    // Check fails in go-cni at the loopback network, before it comes to the other.
    .filter(({ verb }) => verb !== "CHECK")
    .map((call) => JSON.stringify(call))
    .sort();

/** The Go loopback network has another version, and that network alone. */
const withoutLoopback = (line: string) => {
  const { Networks, ...rest } = JSON.parse(line);
  return { ...rest, Networks: Networks.slice(1), loopback: Networks[0].Config.Name };
};

test("the program here and the one in go-cni print the same and call the plugins with the same", ({
  skip,
}) => {
  const ours = runExample(folder, lab.here(codeIn(page)));
  expect(ours.slice(0, 2)).toEqual(["10.1.0.2 10.1.0.1", "fd00::2 fd00::1"]);
  const calls = told(lab.calls());
  // STATUS of two plugins, ADD and DEL of three.
  expect(calls).toHaveLength(8);

  const theirs = runGo(lab.here(codeIn(page, "go"))) ?? skip("no Go, or no module go-cni, on this machine");
  expect(ours.slice(0, 2)).toEqual(theirs.slice(0, 2));
  expect(JSON.parse(ours[2]!)).toEqual(JSON.parse(theirs[2]!));
  expect(withoutLoopback(ours[3]!)).toEqual(withoutLoopback(theirs[3]!));
  expect(calls).toEqual(told(lab.calls()));
}, 300_000);
