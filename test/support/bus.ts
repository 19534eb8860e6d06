import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { commandIn, type NamespaceLike, run } from "./command.ts";
import { temporaryFolder } from "./paths.ts";

/** A D-Bus daemon of the test's own, which stands for the system's. */
export interface TestBus {
  /** For DBUS_SYSTEM_BUS_ADDRESS. */
  readonly address: string;
  readonly socket: string;
  /** Ends the daemon as a crash would; the socket's file stays. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a real dbus-daemon. Undefined where there is none. */
export async function startBus(): Promise<TestBus | undefined> {
  const program = Bun.which("dbus-daemon");
  if (program === null) return undefined;
  const folder = temporaryFolder();
  const socket = join(folder.path, "socket");
  const config = join(folder.path, "bus.conf");
  writeFileSync(config, busConfig(socket));
  const daemon = background([program, `--config-file=${config}`, "--nofork", "--nopidfile"]);
  await until("dbus-daemon", () => existsSync(socket));
  return {
    address: `unix:path=${socket}`,
    socket,
    kill: daemon.kill,
    async close() {
      await daemon.kill();
      folder.remove();
    },
  };
}

/** Everybody may do everything, as a firewalld without its D-Bus policy installed needs it. */
const busConfig = (socket: string): string => `<!DOCTYPE busconfig PUBLIC
 "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path=${socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_type="method_call"/>
    <allow send_destination="*"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
  </policy>
</busconfig>
`;

/** A firewalld that rules over a namespace and answers on a bus. */
export interface TestFirewalld {
  /** What `firewall-cmd` says to these arguments; throws when it fails. */
  command(...args: string[]): string;
  close(): Promise<void>;
}

/** Starts a real firewalld in a namespace. Undefined where there is none. */
export async function startFirewalld(bus: TestBus, ns: NamespaceLike): Promise<TestFirewalld | undefined> {
  const program = Bun.which("firewalld", { PATH: "/usr/sbin:/sbin:/usr/bin" });
  if (program === null) return undefined;
  const folder = temporaryFolder();
  const address = { DBUS_SYSTEM_BUS_ADDRESS: bus.address };
  const options = ["--nofork", "--nopid", "--log-target", "console", "--system-config", folder.path];
  const daemon = background(commandIn(ns, [program, ...options]), address);
  const environment = Object.entries(address).map(([name, value]) => `${name}=${value}`);
  const command = (...args: string[]) => run("env", ...environment, "firewall-cmd", ...args);
  await until("firewalld", () => command("--state") !== "");
  return {
    command,
    async close() {
      await daemon.kill("SIGTERM");
      folder.remove();
    },
  };
}

function background(command: string[], env: Record<string, string> = {}) {
  const child = Bun.spawn(command, {
    env: { PATH: process.env.PATH ?? "", ...env },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  });
  return {
    async kill(signal: NodeJS.Signals = "SIGKILL") {
      child.kill(signal);
      const late = setTimeout(() => child.kill("SIGKILL"), 5000);
      await child.exited;
      clearTimeout(late);
    },
  };
}

async function until(what: string, isReady: () => boolean): Promise<void> {
  for (let i = 0; i < 100; i++) {
    try {
      if (isReady()) return;
    } catch {
      // Not yet.
    }
    await Bun.sleep(100);
  }
  throw new Error(`${what} did not start within ten seconds`);
}
