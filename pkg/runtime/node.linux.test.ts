import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { commandIn, distBin, makeNode, root, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";
import { folderBeside } from "./testing.ts";

/* The library as a user on Node has it: what the build left in dist, plain Node, and the real plugins. */

const arch = process.arch === "arm64" ? "arm64" : "x64";
const nodeBin = join(root, `node_modules/node-linux-${arch}/bin/node`);
let folder: string;

let host: TestNode;
beforeEach(() => {
  host = makeNode();
  folder = folderBeside(import.meta.dirname);
});
afterEach(() => {
  host.close();
  rmSync(folder, { recursive: true, force: true });
});

const program = `
import { execFileSync } from "node:child_process";
import { isNetworkingError, Networking } from "@tscni/runtime";

const [cacheDir, list, netns] = process.argv.slice(2);
const networking = new Networking({ pluginDirs: [${JSON.stringify(distBin)}], cacheDir, minNetworks: 2 });
networking.load({ list }, "loopback");
await networking.status({ timeoutMs: 20_000 });
const { interfaces } = await networking.setup("on-node", netns, { timeoutMs: 20_000 });
const seen = JSON.parse(
  execFileSync("nsenter", ["--net=" + netns, "ip", "-j", "addr", "show", "eth0"], { encoding: "utf8" }),
);
await networking.check("on-node", netns);
const again = await networking.setup("on-node", netns).catch((error) => isNetworkingError(error, "setup-failed"));
await networking.check("on-node", netns);
await networking.remove("on-node");
await networking.remove("on-node", "");
const { attachments } = networking.attachments();
console.log(
  JSON.stringify({
    told: interfaces.eth0.addresses.map(({ address }) => address),
    seen: seen[0].addr_info.filter(({ scope }) => scope === "global").map(({ local, prefixlen }) => local + "/" + prefixlen),
    again,
    attachments,
  }),
);
`;

test("attaches, checks and detaches on plain Node 22", ({ skip }) => {
  if (!existsSync(nodeBin)) skip(`npm has no Node 22 for this machine (${nodeBin})`);
  if (!existsSync(join(import.meta.dirname, "dist/index.js"))) skip("@tscni/runtime is not built");
  const file = join(folder, "program.mjs");
  writeFileSync(file, program);
  const container = host.container();
  const conf = host.bridgeConf();
  const list = JSON.stringify({ cniVersion: "1.1.0", name: conf.name, plugins: [conf] });
  const command = [nodeBin, file, join(folder, "cache"), list, container.path];
  const { stdout, stderr } = Bun.spawnSync(commandIn(host.host, command), { timeout: 50_000 });
  expect(stderr.toString()).toBe("");
  const said = JSON.parse(stdout.toString());
  expect(said.told).toEqual(["10.88.0.2/24", "fd88::2/64"]);
  expect(said).toEqual({ told: said.told, seen: said.told, again: true, attachments: [] });
  expect(host.veths()).toEqual([]);
  expect(host.leases()).toEqual([]);
});
