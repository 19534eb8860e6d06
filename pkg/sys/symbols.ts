/** enum FFIType of bun:ffi */
const [i32, u32, u64, pointer, nothing, long] = [5, 6, 8, 12, 13, 15] as const;

/**
 * The functions of the C library that we call. Variadic ones (open, fcntl, syscall) are declared with the arguments
 * that we pass; on x86-64 and on arm64 Linux these go where C expects them. At most six arguments, integers and
 * pointers only. pkg/engine makes its own table from this one.
 */
export const symbols = {
  __errno_location: { args: [], returns: pointer },
  _exit: { args: [i32], returns: nothing },
  accept4: { args: [i32, pointer, pointer, i32], returns: i32 },
  bind: { args: [i32, pointer, u32], returns: i32 },
  clock_gettime: { args: [i32, pointer], returns: i32 },
  close: { args: [i32], returns: i32 },
  closedir: { args: [pointer], returns: i32 },
  connect: { args: [i32, pointer, u32], returns: i32 },
  flock: { args: [i32, i32], returns: i32 },
  getsockname: { args: [i32, pointer, pointer], returns: i32 },
  ioctl: { args: [i32, u64, pointer], returns: i32 },
  kill: { args: [i32, i32], returns: i32 },
  link: { args: [pointer, pointer], returns: i32 },
  listen: { args: [i32, i32], returns: i32 },
  lseek: { args: [i32, long, i32], returns: long },
  memfd_create: { args: [pointer, u32], returns: i32 },
  mkdir: { args: [pointer, u32], returns: i32 },
  mount: { args: [pointer, pointer, pointer, u64, pointer], returns: i32 },
  open: { args: [pointer, i32, u32], returns: i32 },
  opendir: { args: [pointer], returns: pointer },
  poll: { args: [pointer, u64, i32], returns: i32 },
  posix_spawn: { args: [pointer, pointer, pointer, pointer, pointer, pointer], returns: i32 },
  posix_spawn_file_actions_adddup2: { args: [pointer, i32, i32], returns: i32 },
  posix_spawn_file_actions_destroy: { args: [pointer], returns: i32 },
  posix_spawn_file_actions_init: { args: [pointer], returns: i32 },
  posix_spawnattr_destroy: { args: [pointer], returns: i32 },
  posix_spawnattr_init: { args: [pointer], returns: i32 },
  posix_spawnattr_setflags: { args: [pointer, i32], returns: i32 },
  posix_spawnattr_setsigdefault: { args: [pointer, pointer], returns: i32 },
  posix_spawnattr_setsigmask: { args: [pointer, pointer], returns: i32 },
  pread: { args: [i32, pointer, u64, long], returns: long },
  read: { args: [i32, pointer, u64], returns: long },
  readdir: { args: [pointer], returns: pointer },
  readlink: { args: [pointer, pointer, u64], returns: long },
  recv: { args: [i32, pointer, u64, i32], returns: long },
  recvmsg: { args: [i32, pointer, i32], returns: long },
  rename: { args: [pointer, pointer], returns: i32 },
  rmdir: { args: [pointer], returns: i32 },
  sendto: { args: [i32, pointer, u64, i32, pointer, u32], returns: long },
  setns: { args: [i32, i32], returns: i32 },
  setsockopt: { args: [i32, i32, i32, pointer, u32], returns: i32 },
  signalfd: { args: [i32, pointer, i32], returns: i32 },
  sigprocmask: { args: [i32, pointer, pointer], returns: i32 },
  socket: { args: [i32, i32, i32], returns: i32 },
  strerror: { args: [i32], returns: pointer },
  syscall: { args: [long, long, pointer, long, long, pointer], returns: long },
  umask: { args: [u32], returns: u32 },
  umount2: { args: [pointer, i32], returns: i32 },
  unlink: { args: [pointer], returns: i32 },
  unshare: { args: [i32], returns: i32 },
  utimensat: { args: [i32, pointer, pointer, i32], returns: i32 },
  waitpid: { args: [i32, pointer, i32], returns: i32 },
  write: { args: [i32, pointer, u64], returns: long },
} as const;

/** What a function gives back, for an engine that has to be told in C. */
export const returnNames = {
  [i32]: "INT",
  [u32]: "UNSIGNED",
  [long]: "LONG",
  [pointer]: "POINTER",
  [nothing]: "NOTHING",
} as const;
