import { CniError, ErrorCode } from "@tscni/types";

/**
 * A method call that failed. `error` is the error's name on the bus, such as
 * org.freedesktop.DBus.Error.ServiceUnknown; "" when the bus itself could not be reached or went away.
 */
export class DbusError extends CniError {
  readonly error: string;

  constructor(error: string, msg: string) {
    super(ErrorCode.Internal, msg);
    this.error = error;
  }
}
