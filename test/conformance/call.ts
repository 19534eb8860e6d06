import {
  envOf,
  type HostState,
  type NodeCall,
  type PluginOutcome,
  runPlugin,
  type TestNode,
} from "@tscni/test-support";
import { expect } from "vitest";

export const plugins = ["bridge", "host-local", "loopback", "tuning", "bandwidth"] as const;
export type PluginName = (typeof plugins)[number];
export const verbs = ["ADD", "DEL", "CHECK", "STATUS", "GC"] as const;

const bridgeName = "tscniconf0";

/** A config that the plugin is content with. */
export function goodConf(type: PluginName, node: TestNode): Record<string, unknown> {
  const common = { cniVersion: "1.1.0", name: "conformance", type };
  const ipam = { type: "host-local", subnet: "10.77.0.0/24", dataDir: node.dataDir };
  if (type === "bridge") return { ...common, bridge: bridgeName, ipam };
  if (type === "host-local") return { ...common, ipam };
  // Behind others: of what they have made they are told.
  const behind = { ...common, prevResult: { cniVersion: "1.1.0" } };
  if (type === "tuning") return { ...behind, dataDir: node.dataDir };
  return type === "bandwidth" ? behind : common;
}

/** Runs a plugin on the node's host: any bytes for stdin, any environment. */
export function call(
  node: TestNode,
  type: PluginName,
  verb: string | undefined,
  stdin: object | string | Uint8Array,
  more: NodeCall & { env?: Record<string, string | undefined> } = {},
): Promise<PluginOutcome> {
  const [bin, ...args] = node.command(type);
  const env = {
    ...envOf(verb ?? "", more),
    ...more.env,
    ...(verb === undefined ? { CNI_COMMAND: undefined } : {}),
  };
  return runPlugin({ bin: Bun.which(bin!)!, args, env, stdin });
}

/** Expects the one answer that failure has: an error object of the spec on stdout, and exit 1. */
export function expectError(
  outcome: PluginOutcome,
  what: string,
): { code: number; msg: string; details?: string } {
  expect(outcome, what).toMatchObject({ status: 1, signal: null });
  const { cniVersion, code, msg, details, ...rest } = outcome.json ?? {};
  expect({ code: typeof code, msg: typeof msg, rest }, `${what}: ${outcome.stdout}`).toEqual({
    code: "number",
    msg: "string",
    rest: {},
  });
  expect(msg, what).not.toBe("");
  expect(["string", "undefined"], what).toContain(typeof details);
  expect(["string", "undefined"], what).toContain(typeof cniVersion);
  expect(outcome.stdout, what).toBe(JSON.stringify(outcome.json, null, 4));
  return { code, msg, details };
}

/** Expects success without a word on stdout. */
export function expectSilence(outcome: PluginOutcome, what: string): void {
  expect(outcome, what).toMatchObject({ status: 0, signal: null, stdout: "" });
}

/** What the host-local plugin keeps for itself beside the reservations. */
const bookkeeping = /(?:\/conformance|\/lock|\/\.tscni-index|\/last_reserved_ip\.\d+)$/;

/** What is on the node, but for what stays by design: IPAM's bookkeeping and, if asked for, the bridge itself. */
export function tracesOn(node: TestNode, { bridge = true } = {}): HostState {
  const { files, links, addresses, routes, ...rest } = node.state();
  const counts = (name: unknown) => bridge || name !== bridgeName;
  return {
    ...rest,
    links: links.filter((link) => counts((link as { ifname: string }).ifname)),
    addresses: addresses.filter((address) => counts((address as { dev: string }).dev)),
    routes: routes.filter((route) => counts((route as { dev: string }).dev)),
    files: Object.fromEntries(Object.entries(files).filter(([path]) => !bookkeeping.test(path))),
  };
}

/** Runs the work on a node and expects that nothing stays of it. */
export async function expectNoTrace(
  node: TestNode,
  work: () => Promise<void>,
  options?: { bridge: boolean },
): Promise<void> {
  const before = tracesOn(node, options);
  await work();
  expect(tracesOn(node, options)).toEqual(before);
}

/** Runs the jobs, a few at a time, so that a thousand processes take seconds and not the machine. */
export async function inParallel<T>(items: readonly T[], job: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await job(item);
  };
  await Promise.all(Array.from({ length: 4 }, worker));
}
