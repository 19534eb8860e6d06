import { errnoNames, SysError } from "@tscni/sys";

/** What the kernel says about a refused request beyond its errno (enum nlmsgerr_attrs, linux/netlink.h). */
export interface ExtendedAck {
  /** NLMSGERR_ATTR_MSG: the kernel's explanation. */
  message?: string | undefined;
  /** NLMSGERR_ATTR_OFFS: where in the request the refused attribute begins, in bytes. */
  offset?: number | undefined;
  /** NLMSGERR_ATTR_MISS_TYPE: the number of an attribute that was expected. */
  missingType?: number | undefined;
  /** NLMSGERR_ATTR_MISS_NEST: where the attribute that should contain it begins; absent at the top level. */
  missingNest?: number | undefined;
}

/**
 * A request that the kernel refused. `code` is the errno's name, `call` the message type ("RTM_NEWLINK"),
 * `subject` the object. As every SysError: branch on `code`, never on the text.
 */
export class NetlinkError extends SysError {
  override readonly name = "NetlinkError";
  readonly extended: ExtendedAck;

  constructor(errno: number, request: string, subject: string, extended: ExtendedAck = {}) {
    super(errno, request, subject, describe(errno, extended));
    this.extended = extended;
  }
}

function describe(errno: number, { message, missingType }: ExtendedAck): string {
  let text = errnoNames[errno] ?? `errno ${errno}`;
  if (message !== undefined) text += `: ${message}`;
  if (missingType !== undefined) text += ` (attribute ${missingType} is missing)`;
  return text;
}
