import { isErrno, type SysError } from "./errno.ts";
import { close, isRegularFile, statIfPresent, waitReadable, writeAll } from "./files.ts";
import { checked, checkedResult, cPath, cStrings, libc, ptr } from "./libc.ts";

/** How a child ended, with all that it wrote. */
export interface ChildExit {
  stdout: string;
  stderr: string;
  /** Undefined when a signal ended it. */
  exitCode: number | undefined;
  /** The signal's number. */
  signal: number | undefined;
  /** Whether it was killed because its time was up. */
  timedOut: boolean;
}

export interface ChildOptions {
  /** All that the child reads. */
  stdin?: string;
  /** The whole environment, as `NAME=value`; nothing is inherited beside it. */
  env?: readonly string[];
  /** A descriptor that the child has, too, as its number 3: a lock that lasts as long as either has it open. */
  inherit?: number | undefined;
}

// Sizes with room to spare: glibc has 80 and 336 bytes, musl 80 and 336; a signal set has 128.
const ACTIONS_SIZE = 256;
const ATTRIBUTES_SIZE = 512;
const SIGNAL_SET_SIZE = 128;
const POSIX_SPAWN_SETSIGDEF = 4;
const POSIX_SPAWN_SETSIGMASK = 8;
const MFD_CLOEXEC = 1;
const SIGKILL = 9;

/** The most that is read of what a child wrote, bytes. */
const maxOutput = 256 << 20;

/**
 * A child process that was started and not waited for yet. Its standard streams are files in memory: neither side
 * ever waits for the other to read, and whoever dies leaves nothing behind.
 */
export class Child {
  readonly pid: number;
  readonly #files: readonly number[];
  #exit: ChildExit | undefined;

  constructor(pid: number, files: readonly number[]) {
    this.pid = pid;
    this.#files = files;
  }

  /** Waits until the child has ended; after `timeoutMs` (0: no limit) it is killed. */
  wait(timeoutMs = 0): ChildExit {
    this.#exit ??= this.#reap(timeoutMs);
    return this.#exit;
  }

  #reap(timeoutMs: number): ChildExit {
    const timedOut = timeoutMs > 0 && !endsWithin(this.pid, timeoutMs);
    if (timedOut) libc.kill(this.pid, SIGKILL);
    const status = new Int32Array(1);
    checked("waitpid", `${this.pid}`, () => libc.waitpid(this.pid, ptr(status), 0));
    const [, out, err] = this.#files;
    try {
      const signal = status[0]! & 0x7f; // wait(2): the low seven bits, or else the exit code above them
      return {
        stdout: textOf(out!),
        stderr: textOf(err!),
        exitCode: signal === 0 ? (status[0]! >> 8) & 0xff : undefined,
        signal: signal === 0 ? undefined : signal,
        timedOut,
      };
    } finally {
      for (const fd of this.#files) close(fd);
    }
  }

  /** Waits for a child whose outcome nobody asked for, so that none outlives its parent's work. */
  [Symbol.dispose](): void {
    this.wait();
  }
}

/**
 * Starts a program by its path, without a shell. With posix_spawn(3), which shares the parent's memory until the
 * child has its own program. Throws SysError (ENOENT, EACCES) when it can't be started.
 */
export function startChild(path: string, args: readonly string[], options: ChildOptions = {}): Child {
  const files: number[] = [];
  try {
    for (const name of ["stdin", "stdout", "stderr"])
      files.push(checked("memfd_create", name, () => libc.memfd_create(cPath(name), MFD_CLOEXEC)));
    if (options.stdin) writeInput(files[0]!, options.stdin);
    const inherited = options.inherit === undefined ? files : [...files, options.inherit];
    return new Child(spawn(path, args, options.env ?? [], inherited), files);
  } catch (error) {
    for (const fd of files) close(fd);
    throw error;
  }
}

/** Runs a program to its end: {@link startChild} and wait. */
export function runChild(
  path: string,
  args: readonly string[],
  options: ChildOptions & { timeoutMs?: number } = {},
): ChildExit {
  return startChild(path, args, options).wait(options.timeoutMs);
}

/** Writes from the beginning and goes back there, without moving the offset that the child will have. */
function writeInput(fd: number, text: string): void {
  const end = new TextEncoder().encode(text);
  writeAll(fd, end);
  checked("lseek", "stdin", () => libc.lseek(fd, 0, 0));
}

function spawn(
  path: string,
  args: readonly string[],
  env: readonly string[],
  files: readonly number[],
): number {
  const actions = new Uint8Array(ACTIONS_SIZE);
  const attributes = new Uint8Array(ATTRIBUTES_SIZE);
  const all = new Uint8Array(SIGNAL_SET_SIZE).fill(0xff);
  const none = new Uint8Array(SIGNAL_SET_SIZE);
  const argv = cStrings([path, ...args]);
  const envp = cStrings(env);
  const pid = new Int32Array(1);
  libc.posix_spawn_file_actions_init(ptr(actions));
  libc.posix_spawnattr_init(ptr(attributes));
  // Whatever this engine ignores or blocks, the child begins as programs do.
  libc.posix_spawnattr_setsigdefault(ptr(attributes), ptr(all));
  libc.posix_spawnattr_setsigmask(ptr(attributes), ptr(none));
  libc.posix_spawnattr_setflags(ptr(attributes), POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  try {
    for (const [target, fd] of files.entries())
      libc.posix_spawn_file_actions_adddup2(ptr(actions), fd, target);
    checkedResult(
      "start",
      path,
      libc.posix_spawn(
        ptr(pid),
        cPath(path),
        ptr(actions),
        ptr(attributes),
        ptr(argv.pointers),
        ptr(envp.pointers),
      ),
    );
    return pid[0]!;
  } finally {
    libc.posix_spawn_file_actions_destroy(ptr(actions));
    libc.posix_spawnattr_destroy(ptr(attributes));
  }
}

const SYS_pidfd_open = 434; // the same number on every architecture

/** Whether a process has ended before the time is up. Kernels before 5.3 have no pidfd: there it is waited for. */
function endsWithin(pid: number, timeoutMs: number): boolean {
  const fd = Number(libc.syscall(SYS_pidfd_open, pid, null, 0, 0, null));
  if (fd < 0) return true;
  try {
    return waitReadable(fd, timeoutMs);
  } finally {
    close(fd);
  }
}

/** What a file in memory holds, read from its beginning whatever the offset. */
function textOf(fd: number): string {
  let bytes = new Uint8Array(4 << 10);
  let length = 0;
  while (length < maxOutput) {
    const rest = bytes.subarray(length);
    const count = checked("pread", "output", () => libc.pread(fd, ptr(rest), rest.length, length));
    if (count === 0) break;
    length += count;
    if (length < bytes.length) continue;
    const larger = new Uint8Array(bytes.length * 8);
    larger.set(bytes);
    bytes = larger;
  }
  return length === 0 ? "" : new TextDecoder().decode(bytes.subarray(0, length));
}

const usualFolders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"];

/**
 * A program's path: from the folders of PATH (as our parent gave it), then from the usual ones. Undefined when
 * there is none. Relative folders don't count: the working directory is not ours.
 */
export function findProgram(name: string, path: string): string | undefined {
  for (const folder of [...path.split(":"), ...usualFolders]) {
    if (!folder.startsWith("/")) continue;
    const file = `${folder}/${name}`;
    const found = statIfReachable(file);
    if (found !== undefined && isRegularFile(found) && (found.mode & 0o111) !== 0) return file;
  }
  return undefined;
}

/** As shells do it: a folder of PATH that we may not enter (root's, called as another user) is passed over. */
function statIfReachable(file: string): ReturnType<typeof statIfPresent> {
  try {
    return statIfPresent(file);
  } catch (error) {
    if (isErrno(error, "EACCES", "ELOOP")) return undefined;
    throw error;
  }
}

/** Whether this is the failure of a program that is not there or can't be run. */
export const isStartFailure = (error: unknown): error is SysError =>
  isErrno(error, "ENOENT", "EACCES", "ENOEXEC", "EPERM", "ENOTDIR");
