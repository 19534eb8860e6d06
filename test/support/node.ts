import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ip } from "./command.ts";
import { type HostState, hostState } from "./host-state.ts";
import { makeNamespace, type TestNamespace } from "./namespace.ts";
import { distBin, temporaryFolder } from "./paths.ts";
import { type PluginOutcome, runPlugin } from "./plugin.ts";

/** One call of a plugin, as far as it differs from the usual: container "c1", its namespace, "eth0". */
export interface NodeCall {
  id?: string;
  /** The container's namespace, or a path; undefined leaves CNI_NETNS out. */
  netns?: { readonly path: string } | string | undefined;
  ifName?: string;
  args?: string;
  /** A folder of plugins other than dist/bin, such as Go's. */
  bin?: string;
  /** CNI_PATH; the folder that the plugin is from by default. */
  path?: string;
}

// biome-ignore lint/suspicious/noExplicitAny: tests put into a config what they please
export type Conf = { type: string; [key: string]: any };

/** What a test takes for a node: a namespace as the host, a folder for IPAM, and containers as asked for. */
export interface TestNode {
  readonly host: TestNamespace;
  /** For `ipam.dataDir`. */
  readonly dataDir: string;
  /** A new namespace, closed with the node. */
  container(): TestNamespace;
  /** The command line of a plugin run in the host's namespace. */
  command(type: string, bin?: string): string[];
  /** Runs the plugin that the config names in its own process, in the host's namespace. */
  call(verb: string, conf: Conf, call?: NodeCall): Promise<PluginOutcome>;
  /** The same, expecting success: returns what it printed, parsed. */
  ok(verb: string, conf: Conf, call?: NodeCall): Promise<PluginOutcome["json"]>;
  /** The same, expecting failure: returns the error object. */
  error(verb: string, conf: Conf, call?: NodeCall): Promise<{ code: number; msg: string; details?: string }>;
  /** A config of a plugin with host-local addresses of these subnets; none without subnets. */
  conf(type: string, more?: object, subnets?: readonly string[]): Conf;
  /** That of a bridge. */
  bridgeConf(more?: object, subnets?: readonly string[]): Conf;
  /** The addresses that host-local holds reserved for a network. */
  leases(network?: string): string[];
  /** Empties the IPAM folder, so that the first address is handed out again. */
  resetLeases(): void;
  /** The veths on the host, by name. */
  veths(): string[];
  /** What is on the host, but for link-local addresses, which come late by themselves; and the IPAM folder. */
  state(): HostState;
  close(): void;
}

export function makeNode(): TestNode {
  const host = makeNamespace("host");
  host.run("ip", "link", "set", "lo", "up");
  const data = temporaryFolder();
  const containers: TestNamespace[] = [];
  const command = (type: string, bin = distBin) => [`--net=${host.path}`, "--", join(bin, type)];
  const call = (verb: string, conf: Conf, more: NodeCall = {}) =>
    runPlugin({
      bin: Bun.which("nsenter") ?? "/usr/bin/nsenter",
      args: command(conf.type, more.bin),
      env: envOf(verb, more),
      stdin: conf,
    });
  const conf = (
    type: string,
    more: object = {},
    subnets: readonly string[] = ["10.88.0.0/24", "fd88::/64"],
  ): Conf => ({
    cniVersion: "1.1.0",
    name: "testnet",
    type,
    ...(subnets.length > 0
      ? { ipam: { type: "host-local", dataDir: data.path, ranges: subnets.map((subnet) => [{ subnet }]) } }
      : {}),
    ...more,
  });
  return {
    host,
    dataDir: data.path,
    container() {
      const made = makeNamespace(`c${containers.length + 1}`);
      containers.push(made);
      return made;
    },
    command: (type, bin) => ["nsenter", ...command(type, bin)],
    call,
    async ok(verb, conf, more) {
      const { status, signal, stdout, stderr, json } = await call(verb, conf, more);
      if (status !== 0) throw new Error(`${verb}: ${signal ?? status}: ${stdout}${stderr}`);
      return json;
    },
    async error(verb, conf, more) {
      const { status, stdout, stderr, json } = await call(verb, conf, more);
      if (status !== 1 || !json?.code)
        throw new Error(`${verb}: no error, but ${status}: ${stdout}${stderr}`);
      return json;
    },
    conf,
    bridgeConf: (more = {}, subnets) => conf("bridge", { bridge: "brtest", ...more }, subnets),
    leases(network = "testnet") {
      const folder = join(data.path, network);
      return existsSync(folder)
        ? readdirSync(folder)
            .filter((name) => /^[0-9a-f]+[.:]/.test(name))
            .toSorted()
        : [];
    },
    resetLeases() {
      for (const name of readdirSync(data.path)) rmSync(join(data.path, name), { recursive: true });
    },
    veths: () => ip(host, "link", "show", "type", "veth").map((link) => link.ifname),
    state() {
      const { addresses, routes, ...rest } = hostState({ ns: host, folders: [data.path] });
      return { ...rest, addresses: addresses.filter(isNotLinkLocal), routes: routes.filter(isNotLinkLocal) };
    },
    close() {
      for (const ns of containers) ns.close();
      host.close();
      data.remove();
    },
  };
}

const isNotLinkLocal = (entry: unknown): boolean => !JSON.stringify(entry).includes('"fe80:');

/** The environment of a call. */
export function envOf(verb: string, call: NodeCall): Record<string, string | undefined> {
  const { id = "c1", netns, ifName = "eth0", args, bin = distBin, path = bin } = call;
  return {
    CNI_COMMAND: verb,
    CNI_CONTAINERID: id,
    CNI_NETNS: typeof netns === "object" ? netns.path : netns,
    CNI_IFNAME: ifName,
    CNI_ARGS: args,
    CNI_PATH: path,
  };
}
