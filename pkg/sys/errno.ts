/** Numbers of asm-generic/errno-base.h and errno.h: the same on x86-64 and arm64. */
export const errnoNames: Readonly<Record<number, string>> = {
  1: "EPERM",
  2: "ENOENT",
  3: "ESRCH",
  4: "EINTR",
  5: "EIO",
  6: "ENXIO",
  7: "E2BIG",
  8: "ENOEXEC",
  9: "EBADF",
  11: "EAGAIN",
  12: "ENOMEM",
  13: "EACCES",
  14: "EFAULT",
  16: "EBUSY",
  17: "EEXIST",
  18: "EXDEV",
  19: "ENODEV",
  20: "ENOTDIR",
  21: "EISDIR",
  22: "EINVAL",
  23: "ENFILE",
  24: "EMFILE",
  26: "ETXTBSY",
  27: "EFBIG",
  28: "ENOSPC",
  30: "EROFS",
  31: "EMLINK",
  32: "EPIPE",
  33: "EDOM",
  34: "ERANGE",
  36: "ENAMETOOLONG",
  38: "ENOSYS",
  39: "ENOTEMPTY",
  40: "ELOOP",
  61: "ENODATA",
  71: "EPROTO",
  75: "EOVERFLOW",
  90: "EMSGSIZE",
  92: "ENOPROTOOPT",
  93: "EPROTONOSUPPORT",
  94: "ESOCKTNOSUPPORT",
  95: "EOPNOTSUPP",
  97: "EAFNOSUPPORT",
  98: "EADDRINUSE",
  99: "EADDRNOTAVAIL",
  100: "ENETDOWN",
  101: "ENETUNREACH",
  105: "ENOBUFS",
  107: "ENOTCONN",
  110: "ETIMEDOUT",
  111: "ECONNREFUSED",
  113: "EHOSTUNREACH",
  122: "EDQUOT",
};

/** A system call that failed: branch on `code` (the errno's name), never on the text. */
export class SysError extends Error {
  override readonly name: string = "SysError";
  readonly errno: number;
  readonly code: string;
  /** The call, such as "open". */
  readonly call: string;
  /** What it was called on, such as a path. */
  readonly subject: string;

  constructor(errno: number, call: string, subject: string, text: string) {
    super(`${call} ${subject}: ${text}`);
    this.errno = errno;
    this.code = errnoNames[errno] ?? `errno ${errno}`;
    this.call = call;
    this.subject = subject;
  }
}

/** Whether this is a SysError with one of the given errno names. */
export function isErrno(error: unknown, ...codes: string[]): error is SysError {
  return error instanceof SysError && codes.includes(error.code);
}
