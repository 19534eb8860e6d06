import {
  CLONE_NEWNET,
  close,
  isErrno,
  isNetworkNamespace,
  O,
  open,
  setns,
  stat,
  statIfPresent,
} from "@tscni/sys";
import { CniError, ErrorCode, messageOf } from "@tscni/types";

/** The calling thread's own: /proc/self would be the main thread's, which is another in a worker. */
const ownPath = "/proc/thread-self/ns/net";

/** An open network namespace: a place to open sockets in and to write sysctls of. */
export class Namespace {
  /** The descriptor, for attributes such as IFLA_NET_NS_FD. */
  readonly fd: number;
  /** The path that it was opened by: the `sandbox` of results. */
  readonly path: string;

  constructor(fd: number, path: string) {
    this.fd = fd;
    this.path = path;
  }

  /**
   * Runs `work` with the calling thread in this namespace, and returns to the old one whatever happens.
   * A socket opened there stays there, so this is needed only to open one or to write a sysctl.
   */
  enter<T>(work: () => T): T {
    const old = open(ownPath, O.RDONLY);
    try {
      setns(this.fd, CLONE_NEWNET);
      try {
        return work();
      } finally {
        setns(old, CLONE_NEWNET);
      }
    } finally {
      close(old);
    }
  }

  /** The inode of what is at the path: tells, later, whether there is still the same namespace. */
  get inode(): number {
    return Number(stat(this.path).ino);
  }

  close(): void {
    close(this.fd);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** Opens the namespace at a path. Throws code 8 when there is none or it is something else. */
export function openNamespace(path: string): Namespace {
  const namespace = openNamespaceIfPresent(path);
  if (namespace === undefined)
    throw new CniError(ErrorCode.InvalidNetNs, `failed to open netns "${path}": not a network namespace`, {
      details: "the path is missing, or nothing is mounted on it",
    });
  return namespace;
}

/**
 * Opens the namespace at a path, or returns undefined when it is gone: no path given, no file there, or a
 * file that is no namespace (what remains of /run/netns/x when its mount is gone).
 */
export function openNamespaceIfPresent(path: string): Namespace | undefined {
  if (path === "") return undefined;
  let fd: number;
  try {
    fd = open(path, O.RDONLY | O.NONBLOCK);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR", "ENXIO", "ELOOP", "ENAMETOOLONG")) return undefined;
    throw new CniError(ErrorCode.InvalidNetNs, `failed to open netns "${path}": ${messageOf(error)}`);
  }
  if (isNetworkNamespace(fd)) return new Namespace(fd, path);
  close(fd);
  return undefined;
}

/** Whether two paths, or a path and the calling thread, are in one namespace. False when either can't be read. */
export function sameNamespace(path: string, other: string = ownPath): boolean {
  try {
    const [a, b] = [statIfPresent(path), statIfPresent(other)];
    return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
  } catch {
    return false;
  }
}
