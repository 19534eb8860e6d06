import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  envOf,
  type NodeCall,
  type PluginOutcome,
  runPlugin,
  type TestNode,
  temporaryFolder,
} from "@tscni/test-support";

/** For the tests: calls of the plugin on a node, with the result of an imagined bridge plugin before it. */

export interface FirewallCall extends NodeCall {
  env?: Record<string, string | undefined>;
}

/** A result as bridge leaves it: the bridge first, then the container's address of each family. */
export const resultWith = (addresses: readonly string[], bridge = "brfw") => ({
  cniVersion: "1.1.0",
  interfaces: [{ name: bridge }, { name: "eth0", sandbox: "/run/netns/c1" }],
  ips: addresses.map((address) => ({ interface: 1, address })),
});

export const confWith = (more: object = {}) => ({
  cniVersion: "1.1.0",
  name: "fwnet",
  type: "firewall",
  ...more,
});

/** Calls the plugin and expects nothing. */
export function callFirewall(
  node: TestNode,
  verb: string,
  conf: object,
  { env, ...call }: FirewallCall = {},
): Promise<PluginOutcome> {
  const [program, ...args] = node.command("firewall", call.bin);
  return runPlugin({
    bin: Bun.which(program!)!,
    args,
    env: { ...envOf(verb, { netns: "/run/netns/nowhere", ...call }), ...env },
    stdin: conf,
  });
}

/** The same, expecting success; returns what it said on stderr. */
export async function okFirewall(...args: Parameters<typeof callFirewall>): Promise<string> {
  const { status, stdout, stderr } = await callFirewall(...args);
  if (status !== 0) throw new Error(`${args[1]}: ${status}: ${stdout}${stderr}`);
  return stderr;
}

/** The same, expecting failure; returns the error object. */
export async function firewallError(
  ...args: Parameters<typeof callFirewall>
): Promise<{ code: number; msg: string; details?: string }> {
  const { status, json, stdout, stderr } = await callFirewall(...args);
  if (status !== 1 || !json?.code) throw new Error(`${args[1]}: no error, but ${status}: ${stdout}${stderr}`);
  return json;
}

/** The rules of one family's filter table that name any of these texts. */
export const rulesOf = (node: TestNode, family: 4 | 6, ...texts: string[]): string[] =>
  node.host
    .run(family === 4 ? "iptables-save" : "ip6tables-save", "-t", "filter")
    .split("\n")
    .filter((line) => line.startsWith("-A ") && texts.some((text) => line.includes(text)));

/** The elements of our nftables sets, as nft shows them; "" when there is no table. */
export function elementsIn(node: TestNode): string {
  try {
    const table = node.host.run("nft", "list", "table", "inet", "tscni_firewall");
    return table
      .split("\n")
      .filter((line) => line.includes("elements"))
      .join("\n");
  } catch {
    return "";
  }
}

/**
 * A folder of tools for PATH that write their name to a log, and then do what their script says; of all others that
 * the plugin may start, none can be started.
 */
export function makeTools(scripts: Record<string, string>) {
  const folder = temporaryFolder();
  const log = join(folder.path, "log");
  for (const name of allTools) {
    const path = join(folder.path, name);
    const script = scripts[name];
    const body = script === undefined ? "#!/nonexistent\n" : `#!/bin/sh\necho ${name} >>${log}\n${script}\n`;
    writeFileSync(path, body);
    chmodSync(path, 0o755);
  }
  return {
    path: folder.path,
    /** The tools that were started, in order. */
    started: () => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : []),
    remove: folder.remove,
  };
}

/** Every tool that the plugin may start. */
export const allTools = ["iptables", "ip6tables"]
  .flatMap((name) => [name, `${name}-save`, `${name}-restore`])
  .concat("nft");

/** Scripts that pass on to the real tools. */
export const realTools = (...names: string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, `exec /usr/sbin/${name} "$@"`]));
