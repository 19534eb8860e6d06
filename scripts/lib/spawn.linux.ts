import { dlopen, type Pointer, ptr } from "bun:ffi";

/*
 * Starts processes as cheaply as a C program would (glibc's posix_spawn is a vfork), where Bun.spawnSync takes
 * 1.5 ms by itself and hides what is to be measured.
 */

const { symbols: libc } = dlopen("libc.so.6", {
  posix_spawn: { args: ["ptr", "ptr", "ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  posix_spawn_file_actions_init: { args: ["ptr"], returns: "i32" },
  posix_spawn_file_actions_addopen: { args: ["ptr", "i32", "ptr", "i32", "u32"], returns: "i32" },
  waitpid: { args: ["i32", "ptr", "i32"], returns: "i32" },
});

const O_RDONLY = 0;
const O_WRONLY_CREAT_TRUNC = 0o1101;

/** A process that can be started any number of times. Holds the memory that posix_spawn reads. */
export interface Command {
  readonly start: () => number;
  readonly what: string;
}

export interface CommandOptions {
  file: string;
  args?: readonly string[];
  env: Record<string, string>;
  /** Files, opened in the child; the output is overwritten. */
  stdin: string;
  stdout: string;
  /** Our own when absent. */
  stderr?: string;
}

const text = (value: string) => new TextEncoder().encode(`${value}\0`);

/** A `char *[]` that ends with NULL, and what it points to. */
function stringList(values: readonly string[]) {
  const buffers = values.map(text);
  return { buffers, list: new BigUint64Array([...buffers.map((b) => BigInt(ptr(b))), 0n]) };
}

export function prepare({ file, args = [], env, stdin, stdout, stderr }: CommandOptions): Command {
  const actions = new Uint8Array(256); // posix_spawn_file_actions_t is 80 bytes in glibc and in musl
  const [path, input, output] = [text(file), text(stdin), text(stdout)];
  libc.posix_spawn_file_actions_init(ptr(actions));
  libc.posix_spawn_file_actions_addopen(ptr(actions), 0, ptr(input), O_RDONLY, 0);
  libc.posix_spawn_file_actions_addopen(ptr(actions), 1, ptr(output), O_WRONLY_CREAT_TRUNC, 0o600);
  const errors = text(stderr ?? "");
  if (stderr !== undefined)
    libc.posix_spawn_file_actions_addopen(ptr(actions), 2, ptr(errors), O_WRONLY_CREAT_TRUNC, 0o600);
  const argv = stringList([file, ...args]);
  const envp = stringList(Object.entries(env).map(([key, value]) => `${key}=${value}`));
  const pid = new Int32Array(1);
  const held = [path, input, output, errors, actions, argv, envp, pid];
  const start = () => {
    const error = libc.posix_spawn(
      ptr(pid),
      ptr(path),
      ptr(actions),
      null as unknown as Pointer,
      ptr(argv.list),
      ptr(envp.list),
    );
    if (error !== 0 || held.length === 0) throw new Error(`posix_spawn ${file}: errno ${error}`);
    return pid[0]!;
  };
  return { start, what: [env.CNI_COMMAND, file, ...args].filter(Boolean).join(" ") };
}

const status = new Int32Array(1);

/** Waits for a process to end, and throws unless it succeeded. */
export function wait(pid: number, what: string): void {
  if (libc.waitpid(pid, ptr(status), 0) !== pid) throw new Error(`waitpid ${what} failed`);
  if (status[0] !== 0) throw new Error(`${what}: wait status 0x${status[0]!.toString(16)}`);
}

/** Whether a process still runs; one that has ended is waited for. */
export function running(pid: number): boolean {
  const WNOHANG = 1;
  return libc.waitpid(pid, ptr(status), WNOHANG) === 0;
}

/** Runs a process; returns milliseconds from before its start to after its end. */
export function timed(command: Command): number {
  const start = Bun.nanoseconds();
  wait(command.start(), command.what);
  return (Bun.nanoseconds() - start) / 1e6;
}
