/**
 * Runs a command in a network namespace of its own, on a network with published ports, and takes everything away again:
 *
 *   sudo scripts/bun examples/run/run.ts -p 8080:80 -p 5353:53/udp -- python3 -m http.server 80
 *
 * What a container runtime does for networking, in one page. Plugins are those of CNI_PATH (/opt/cni/bin).
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { Networking, type PortMapping, type SetupResult } from "@tscni/runtime";

const network = {
  cniVersion: "1.1.0",
  name: "run",
  plugins: [
    {
      type: "bridge",
      bridge: "cni-run0",
      isDefaultGateway: true,
      ipMasq: true,
      hairpinMode: true,
      ipam: { type: "host-local", ranges: [[{ subnet: "10.77.0.0/16" }], [{ subnet: "fd77:77::/64" }]] },
    },
    { type: "portmap", capabilities: { portMappings: true } },
  ],
};

/** HOST:CONTAINER[/PROTOCOL] */
function portOf(text: string): PortMapping {
  const [, host, container, protocol = "tcp"] = /^(\d+):(\d+)(?:\/(tcp|udp|sctp))?$/.exec(text) ?? [];
  if (host === undefined) throw new Error(`-p ${text}: not HOST:CONTAINER or HOST:CONTAINER/udp`);
  return {
    hostPort: Number(host),
    containerPort: Number(container),
    protocol: protocol as PortMapping["protocol"],
  };
}

function show({ interfaces }: SetupResult, ports: readonly PortMapping[]): void {
  for (const [name, { addresses, sandbox }] of Object.entries(interfaces))
    if (sandbox) console.error(`${name}: ${addresses.map(({ address }) => address).join(" ")}`);
  for (const { hostPort, containerPort, protocol } of ports)
    console.error(`port ${hostPort} of this host leads to ${containerPort}/${protocol}`);
}

/** The command's exit status; that of a shell when a signal ended it. */
function ended(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code, signal) => resolve(signal === null ? (code ?? 1) : 130));
  });
}

/** Our options end where the command begins, with or without "--" (which Bun keeps to itself when it comes first). */
function commandLine([first, second, ...rest]: readonly string[]): {
  ports: PortMapping[];
  command: string[];
} {
  if (first === "-p" && second !== undefined) {
    const { ports, command } = commandLine(rest);
    return { ports: [portOf(second), ...ports], command };
  }
  const all = [first, second, ...rest].filter((word) => word !== undefined);
  return { ports: [], command: first === "--" ? all.slice(1) : all };
}

async function main(): Promise<number> {
  const { ports: portMappings, command } = commandLine(process.argv.slice(2));
  if (command.length === 0) {
    console.error("usage: run.ts [-p HOST:CONTAINER[/udp]]... -- COMMAND...");
    return 2;
  }
  const id = `run-${randomUUID().slice(0, 8)}`;
  const netns = `/run/netns/${id}`;
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stop.abort());

  const networking = new Networking({ pluginDirs: (process.env.CNI_PATH ?? "/opt/cni/bin").split(":") });
  networking.load({ list: JSON.stringify(network) }, "loopback");
  networking.subscribe((event) => {
    if (event.type === "log") console.error(event.text.trimEnd());
  });

  await networking.status({ signal: stop.signal, timeoutMs: 10_000 });
  execFileSync("ip", ["netns", "add", id]);
  try {
    // When this fails or is stopped, what it had attached is taken back before it throws.
    const result = await networking.setup(id, netns, {
      portMappings,
      signal: stop.signal,
      timeoutMs: 30_000,
    });
    try {
      show(result, portMappings);
      const child = spawn("ip", ["netns", "exec", id, ...command], { stdio: "inherit" });
      stop.signal.addEventListener("abort", () => child.kill("SIGTERM"), { once: true });
      if (stop.signal.aborted) child.kill("SIGTERM");
      return await ended(child);
    } finally {
      await networking.remove(id, netns, { portMappings });
    }
  } finally {
    execFileSync("ip", ["netns", "del", id]);
  }
}

main().then(
  (status) => {
    process.exitCode = status;
  },
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  },
);
