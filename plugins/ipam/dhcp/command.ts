import { exitNow, writeAll } from "@tscni/sys";
import { CniError, messageOf } from "@tscni/types";
import { runDaemon } from "./daemon/daemon.ts";
import { parseDaemonFlags, UsageError } from "./daemon/flags.ts";
import { printStatus } from "./status.ts";

const usage = `Usage: dhcp daemon [FLAGS]     leases addresses for the plugin, and keeps them
       dhcp status [--json] [-socketpath PATH]   shows the leases of a running daemon

Flags of the daemon:
  -socketpath PATH         where plugins find it (/run/cni/dhcp.sock)
  -leasedir PATH           where it keeps the leases (/var/lib/cni/dhcp)
  -hostprefix PATH         where it sees the host's root: put before every path of the host
  -pidfile PATH            a file for its process id
  -broadcast               ask servers to broadcast their answers
  -timeout DURATION        how long to wait for a server that made an offer (10s)
  -resendmax DURATION      the longest pause between two attempts (62s)
  -resendtimeout DURATION  after which an ADD fails (3m28s)
`;

/** The plugin called by hand, with arguments: its daemon, and a look at it. Ends the process. */
export async function command(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const [name, ...rest] = args;
  try {
    if (name === "daemon") await runDaemon(parseDaemonFlags(rest), env);
    else if (name === "status") printStatus(rest);
    else if (name === "help" || name === "--help" || name === "-h") say(1, usage);
    else throw new UsageError(`unknown command ${JSON.stringify(name)}`);
  } catch (error) {
    const isUsage = error instanceof UsageError;
    const details = error instanceof CniError && error.details ? ` (${error.details})` : "";
    say(
      2,
      `dhcp: ${error instanceof CniError ? error.msg + details : messageOf(error)}\n${isUsage ? `\n${usage}` : ""}`,
    );
    exitNow(isUsage ? 2 : 1);
  }
  exitNow(0);
}

function say(fd: number, text: string): void {
  writeAll(fd, new TextEncoder().encode(text));
}
