import { close, isErrno, mkdirAll, unlinkIfPresent } from "@tscni/sys";
import { connectUnix, listenUnix, setNonBlocking } from "@tscni/sys/net";
import { processId } from "./runtime.ts";

/** Where the daemon listens. */
export interface Listener {
  fd: number;
  /** Takes away what it made; not what systemd did. */
  remove(): void;
}

/** sd_listen_fds(3): the first descriptor that is handed over. */
const firstHandedOver = 3;

type Env = Readonly<Record<string, string | undefined>>;

/** The socket that systemd hands over, or a new one in place of one that nobody listens at. */
export function openListener(path: string, env: Env): Listener {
  const count = env.LISTEN_PID === String(processId()) ? Number(env.LISTEN_FDS) : 0;
  if (count > 1) throw new Error(`Too many (${count}) FDs passed through socket activation`);
  if (count === 1) {
    setNonBlocking(firstHandedOver);
    return { fd: firstHandedOver, remove() {} };
  }
  const slash = path.lastIndexOf("/");
  if (slash > 0) mkdirAll(path.slice(0, slash), 0o700);
  return { fd: listenAnew(path), remove: () => void unlinkIfPresent(path) };
}

function listenAnew(path: string): number {
  try {
    return listenUnix(path);
  } catch (error) {
    if (!isErrno(error, "EADDRINUSE")) throw error;
  }
  if (isListening(path)) throw new Error(`another DHCP daemon listens at ${path}`);
  unlinkIfPresent(path);
  return listenUnix(path);
}

function isListening(path: string): boolean {
  try {
    close(connectUnix(path));
    return true;
  } catch (error) {
    if (isErrno(error, "ECONNREFUSED", "ENOENT")) return false;
    throw error;
  }
}
