import { O, unlinkIfPresent, writeAll, writeTextFile } from "@tscni/sys";
import type { DaemonFlags } from "./flags.ts";
import { Leases } from "./leases.ts";
import { Loop } from "./loop.ts";
import { keepFilesPrivate, onTermination, processId } from "./runtime.ts";
import { serve } from "./server.ts";
import { openListener } from "./socket.ts";
import { Store } from "./store.ts";

/**
 * Runs until SIGTERM or SIGINT. The leases stay: the next daemon finds them on disk. Throws when the socket or the
 * leases belong to another daemon, or can't be had.
 */
export async function runDaemon(
  flags: DaemonFlags,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { pidfile, hostprefix, socketpath, broadcast, leasedir } = flags;
  keepFilesPrivate();
  const loop = new Loop();
  const store = new Store(hostprefix + leasedir);
  const limits = {
    timeoutMs: flags.timeout,
    resendMaxMs: flags.resendmax,
    resendTimeoutMs: flags.resendtimeout,
  };
  const leases = new Leases({ loop, store, limits, log }, { hostPrefix: hostprefix, broadcast });
  const listener = openListener(hostprefix + socketpath, env);
  if (pidfile !== "") writeTextFile(pidfile, String(processId()), O.WRONLY | O.CREAT | O.TRUNC, 0o644);
  onTermination(loop, () => {
    log("stopping; the leases stay");
    loop.stop();
  });
  leases.resume();
  serve(loop, listener.fd, (request, onHangUp) => leases.answer(request, onHangUp), log);
  log(`listening at ${hostprefix + socketpath}`);
  await loop.run();
  leases.stop();
  listener.remove();
  if (pidfile !== "") unlinkIfPresent(pidfile);
  store.close();
}

/** One line to stderr, which the journal keeps with its time. Nobody there is no reason to stop. */
function log(line: string): void {
  try {
    writeAll(2, new TextEncoder().encode(`${line}\n`));
  } catch {}
}
