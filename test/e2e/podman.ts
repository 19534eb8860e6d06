import { copyFileSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { distBin, root } from "@tscni/test-support";
import { type Machine, machineProblem, type Outcome, startMachine } from "./machine.ts";

export type Backend = "iptables" | "nftables";

/** Podman on a machine of its own, with our plugins. */
export interface Podman extends Machine {
  /** Where Podman keeps its conflists. */
  readonly confDir: string;
  podman(...args: string[]): string;
  tryPodman(...args: string[]): Outcome;
  /** `podman network create`, and the backend put into what it wrote. Dual stack unless IPv4 alone is asked for. */
  createNetwork(name: string, options: string[]): void;
  /** `podman run -d` of a container that serves these ports; the options come before the image. */
  serve(name: string, ports: number[], options: string[]): void;
  /** Waits until the container of this name serves, asking it from within. */
  waitFor(name: string, port: number): Promise<void>;
  /** The process id of a container. */
  pidOf(name: string): string;
  /** What a server answers to this machine, or to somebody in another namespace; "" when it does not. */
  ask(address: string, port: number, more?: { from?: string; udp?: boolean }): string;
}

const tools = ["podman", "crun", "busybox", "nc.openbsd", "ping"];

/** Why Podman can't be run here; undefined when it can. */
export function podmanProblem(): string | undefined {
  const missing = tools.filter((tool) => !Bun.which(tool));
  if (missing.length > 0)
    return `not installed: ${missing.join(", ")} (podman, crun, busybox-static, netcat-openbsd)`;
  return machineProblem();
}

const image = "localhost/box";

export async function startPodman(backend: Backend, bin = distBin): Promise<Podman> {
  const machine = await startMachine();
  const { folder } = machine;
  const confDir = join(folder, "net.d");
  mkdirSync(confDir);
  const conf = join(folder, "containers.conf");
  writeFileSync(conf, containersConf(bin, confDir));
  const storage = ["--root", "--runroot", "--tmpdir"].flatMap((option) => [
    option,
    join(folder, option.slice(2)),
  ]);
  const podman = ["env", `CONTAINERS_CONF=${conf}`, "podman", ...storage, "--storage-driver", "vfs"];
  const exec = (...args: string[]) => machine.run(...podman, ...args);
  exec("import", "-q", makeImage(folder), image);
  const pidOf = (name: string) => exec("inspect", "-f", "{{.State.Pid}}", name).trim();
  const ask: Podman["ask"] = (address, port, { from, udp } = {}) => {
    const nc = ["nc.openbsd", ...(udp ? ["-u", "-W1"] : ["-N"]), "-w2", address, String(port)];
    const at = from ? ["nsenter", `--net=${from}`, "--", ...nc] : nc;
    return machine.attempt("timeout", "3", "sh", "-c", 'echo q | "$@"', "sh", ...at).stdout.trim();
  };
  return {
    ...machine,
    confDir,
    pidOf,
    ask,
    podman: exec,
    tryPodman: (...args) => machine.attempt(...podman, ...args),
    createNetwork(name, options) {
      exec("network", "create", ...options, name);
      const file = join(confDir, `${name}.conflist`);
      writeFileSync(file, withBackend(readFileSync(file, "utf8"), backend));
    },
    serve(name, ports, options) {
      // The image has next to nothing: the container runs what this machine has.
      const server = ["chroot", "/host", join(root, "scripts/bun"), join(import.meta.dirname, "server.ts")];
      const command = [...server, name, ...ports.map(String)];
      exec("run", "-d", "--name", name, "-v", "/:/host:ro", ...options, image, ...command);
    },
    async waitFor(name, port) {
      const from = `/proc/${pidOf(name)}/ns/net`;
      for (let i = 0; i < 200; i++) {
        if (ask("::1", port, { from }).startsWith(name)) return;
        await Bun.sleep(20);
      }
      throw new Error(`${name} does not serve port ${port}: ${exec("logs", name)}`);
    },
    close() {
      machine.attempt(...podman, "rm", "-f", "-t0", "-a");
      machine.close();
    },
  };
}

/** The keys that let containers run without cgroup rights, and ours. */
const containersConf = (bin: string, confDir: string): string => `
[network]
network_backend = "cni"
cni_plugin_dirs = ["${bin}"]
network_config_dir = "${confDir}"
[engine]
runtime = "crun"
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
cgroups = "disabled"
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
`;

/** A tar with a shell and its friends. */
function makeImage(folder: string): string {
  const bin = join(folder, "image/bin");
  mkdirSync(bin, { recursive: true });
  mkdirSync(join(folder, "image/host"));
  copyFileSync(Bun.which("busybox")!, join(bin, "busybox"));
  for (const applet of ["sh", "chroot", "sleep"]) symlinkSync("busybox", join(bin, applet));
  const tar = join(folder, "image.tar");
  Bun.spawnSync(["tar", "-C", join(folder, "image"), "-cf", tar, ...readdirSync(join(folder, "image"))]);
  return tar;
}

/** Podman knows no backends for its plugins: they are put into its file. */
function withBackend(text: string, backend: Backend): string {
  const list = JSON.parse(text);
  for (const plugin of list.plugins) {
    if (plugin.type === "bridge") plugin.ipMasqBackend = backend;
    if (plugin.type === "portmap" || plugin.type === "firewall") plugin.backend = backend;
  }
  return JSON.stringify(list);
}
