import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "@tscni/test-support";

export interface Outcome {
  status: number | null;
  stdout: string;
  stderr: string;
}

/**
 * What a container engine takes for a machine of its own: namespaces for network, mounts and cgroups, held by a
 * process that sleeps, with empty /run, /dev/shm and /var/lib/cni, and cgroups that it may write.
 */
export interface Machine {
  /** A folder of the machine's own, seen from inside and outside under the same path. */
  readonly folder: string;
  /** Its network namespace, for `ip` and others of @tscni/test-support. */
  readonly netns: string;
  /** Runs a command in it, with next to no environment. Returns its stdout, throws when it fails. */
  run(...command: string[]): string;
  /** The same, whatever comes of it. */
  attempt(...command: string[]): Outcome;
  close(): void;
}

const setUp = [
  "umount -R /sys/fs/cgroup 2>/dev/null",
  "set -e",
  "mount -t cgroup2 none /sys/fs/cgroup",
  "mkdir -p /var/lib/cni",
  "for dir in /run /dev/shm /var/lib/cni; do mount -t tmpfs tmpfs $dir; done",
  "ip link set lo up",
  "echo ready",
  "exec sleep 600", // whoever forgets to close it
].join("\n");

/** Why there can't be a machine here; undefined when there can. */
export function machineProblem(): string | undefined {
  // In a user namespace one is root, too, but maps few of the ids that an image may have.
  const allIds = /^\s*0\s+0\s+4294967295\s*$/.test(readFileSync("/proc/self/uid_map", "utf8"));
  if (process.getuid?.() !== 0 || !allIds)
    return "a machine of its own for Podman takes root, outside a user namespace";
  const { exitCode, stderr } = Bun.spawnSync(["unshare", "-nmC", "mount", "-t", "cgroup2", "none", "/mnt"]);
  return exitCode === 0 ? undefined : `cgroup2 can't be mounted here: ${stderr}`.trim();
}

export async function startMachine(): Promise<Machine> {
  const { path: folder, remove } = temporaryFolder();
  mkdirSync(join(folder, "tmp"));
  const holder = Bun.spawn(["unshare", "-nmC", "sh", "-c", setUp], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const { value } = await holder.stdout.getReader().read();
  if (value === undefined) throw new Error(`no machine: ${await new Response(holder.stderr).text()}`);
  const { pid } = holder;
  const attempt = (...command: string[]): Outcome => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(
      ["nsenter", `--target=${pid}`, "--net", "--mount", "--cgroup", "--", ...command],
      {
        env: { PATH: process.env.PATH, HOME: folder, TMPDIR: join(folder, "tmp"), LC_ALL: "C.UTF-8" },
        stdin: "ignore",
        timeout: 60_000,
      },
    );
    return { status: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
  };
  return {
    folder,
    netns: `/proc/${pid}/ns/net`,
    attempt,
    run(...command) {
      const { status, stdout, stderr } = attempt(...command);
      if (status !== 0) throw new Error(`${command.join(" ")}: exit ${status}: ${stderr}${stdout}`);
      return stdout;
    },
    close() {
      holder.kill();
      remove();
    },
  };
}

/** A host beside the machine: no more than a network namespace, held by a process that sleeps. */
export interface Neighbour {
  readonly pid: number;
  /** Good in every mount namespace, as no mounted file is. */
  readonly path: string;
  close(): void;
}

export async function startNeighbour(): Promise<Neighbour> {
  const holder = Bun.spawn(["unshare", "-n", "sh", "-c", "echo ready; exec sleep 600"], { stdout: "pipe" });
  await holder.stdout.getReader().read();
  return { pid: holder.pid, path: `/proc/${holder.pid}/ns/net`, close: () => holder.kill() };
}
