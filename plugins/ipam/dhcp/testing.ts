import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ip, makeNamespace, runPlugin, type TestNamespace, temporaryFolder } from "@tscni/test-support";

/*
 * For the tests: a network of its own with a bridge, containers on it, a DHCP server, and the daemon as its users run
 * it, the executable.
 */

/** A process that goes with the test. */
export interface Running {
  /** All that it has written so far. */
  log(): string;
  kill(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface LabCall {
  id?: string;
  ns?: TestNamespace;
  conf?: object;
  ipam?: object;
  args?: string;
}

/** The exit status, stderr, and what is in the object on stdout. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into it as they please
export type Answered = any;

export interface Lab {
  readonly host: TestNamespace;
  readonly folder: string;
  readonly leaseDir: string;
  /** A new container with eth0 on the bridge. */
  container(): TestNamespace;
  /** Starts something in the host's namespace. */
  start(name: string, ...command: string[]): Running;
  daemon(...flags: string[]): Promise<Running>;
  call(verb: string, call: LabCall): Promise<Answered>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it as they please
  leases(): Promise<any[]>;
  close(): Promise<void>;
}

export function makeLab(): Lab {
  const host = makeNamespace("dhcphost");
  const folder = temporaryFolder();
  host.run("ip", "link", "set", "lo", "up");
  host.run("ip", "link", "add", "br0", "type", "bridge");
  host.run("ip", "addr", "add", "10.55.0.1/24", "dev", "br0");
  host.run("ip", "link", "set", "br0", "up");
  const containers: TestNamespace[] = [];
  const running: Running[] = [];
  const socket = join(folder.path, "dhcp.sock");
  const leaseDir = join(folder.path, "leases");
  const nsenter = [`--net=${host.path}`, "--"];
  const plugin = join(process.env.TSCNI_BIN ?? join(import.meta.dirname, "../../../dist/bin"), "dhcp");

  function start(name: string, ...command: string[]): Running {
    const path = join(folder.path, `${name}-${running.length}.log`);
    const file = Bun.file(path);
    const child = Bun.spawn(["nsenter", ...nsenter, ...command], {
      stdin: "ignore",
      stdout: file,
      stderr: file,
    });
    const entry = {
      log: () => (existsSync(path) ? readFileSync(path, "utf8") : ""),
      async kill(signal: NodeJS.Signals = "SIGTERM") {
        child.kill(signal);
        await child.exited;
        return child.exitCode;
      },
    };
    running.push(entry);
    return entry;
  }

  return {
    host,
    folder: folder.path,
    leaseDir,
    start,
    container() {
      const name = `v${containers.length}`;
      const ns = makeNamespace(`c${containers.length}`);
      containers.push(ns);
      host.run(
        "ip",
        "link",
        "add",
        name,
        "master",
        "br0",
        "up",
        "type",
        "veth",
        "peer",
        "name",
        "eth0",
        "netns",
        ns.path,
      );
      return ns;
    },
    async daemon(...flags) {
      const paths = ["-socketpath", socket, "-leasedir", leaseDir];
      const daemon = start("daemon", plugin, "daemon", ...paths, ...flags);
      await until("the daemon listens", () => daemon.log().includes("listening"));
      return daemon;
    },
    async call(verb, { id = "c1", ns, conf = {}, ipam = {}, args }) {
      const stdin = {
        cniVersion: "1.1.0",
        name: "lan",
        type: "bridge",
        ipam: { type: "dhcp", daemonSocketPath: socket, ...ipam },
        ...conf,
      };
      const env = {
        CNI_COMMAND: verb,
        CNI_CONTAINERID: id,
        CNI_NETNS: ns?.path,
        CNI_IFNAME: "eth0",
        CNI_ARGS: args,
      };
      const { status, json, stderr } = await runPlugin({ bin: plugin, env, stdin });
      return { status, ...json, stderr };
    },
    async leases() {
      const { json } = await runPlugin({
        bin: plugin,
        args: ["status", "--json", "-socketpath", socket],
        env: {},
      });
      return json.leases;
    },
    async close() {
      for (const entry of running) await entry.kill("SIGKILL");
      for (const ns of containers) ns.close();
      host.close();
      folder.remove();
    },
  };
}

/** Looks every 20 ms until it is so; throws after the time given. */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  ms = 15_000,
): Promise<void> {
  const end = Date.now() + ms;
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error(`not in ${ms} ms: ${what}`);
    await Bun.sleep(20);
  }
}

/** Gives an interface the address of a result, as the plugin that asked for it does. */
export function assign(ns: TestNamespace, result: { ips: { address: string }[] }): void {
  ns.run("ip", "addr", "add", result.ips[0]!.address, "dev", "eth0");
}

export const isUp = (ns: TestNamespace): boolean =>
  ip(ns, "link", "show", "dev", "eth0")[0].flags.includes("UP");
