import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openNamespace } from "@tscni/ns";
import { bindMount, CLONE_NEWNET, close, O, open, setns, unmount, unshare } from "@tscni/sys";
import { commandIn, run } from "./command.ts";

/** A network namespace with a name, as a container runtime makes it. Its `lo` is down. */
export interface TestNamespace {
  /** The CNI_NETNS: a file that the namespace is mounted on. */
  readonly path: string;
  /** Runs a command in it, without a shell; returns stdout, throws when it fails. */
  run(...command: string[]): string;
  /** Takes the mount and the file away. Twice does no harm. */
  close(): void;
}

/**
 * Makes a namespace. The mount goes into the caller's mount namespace, which ought to be private: tests run
 * under `unshare -nm`.
 */
export function makeNamespace(name = "netns"): TestNamespace {
  const folder = mkdtempSync(join(tmpdir(), "tscni-ns-"));
  const path = join(folder, name);
  closeSync(openSync(path, "w"));
  mountNewNamespace(path);
  let mounted = true;
  return {
    path,
    run: (...command) => run(...commandIn(path, command)),
    close() {
      if (!mounted) return;
      mounted = false;
      unmount(path);
      rmSync(folder, { recursive: true });
    },
  };
}

/** Does work with the test's own thread in the namespace, without an await. */
export function inside<T>(ns: TestNamespace, work: () => T): T {
  using entered = openNamespace(ns.path);
  return entered.enter(work);
}

/** The calling thread makes the namespace by entering it, leaves it on the file, and returns. */
function mountNewNamespace(path: string): void {
  const old = open("/proc/thread-self/ns/net", O.RDONLY);
  try {
    unshare(CLONE_NEWNET);
    try {
      bindMount("/proc/thread-self/ns/net", path);
    } finally {
      setns(old, CLONE_NEWNET);
    }
  } finally {
    close(old);
  }
}
