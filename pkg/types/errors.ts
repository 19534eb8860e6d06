/**
 * Error codes of the spec (https://www.cni.dev/docs/spec/#error), and the two that the Go
 * implementation adds: 8 for a bad namespace and 999 for everything without a code.
 */
export const ErrorCode = {
  Unknown: 0,
  IncompatibleCniVersion: 1,
  UnsupportedField: 2,
  UnknownContainer: 3,
  InvalidEnvironmentVariables: 4,
  IoFailure: 5,
  DecodingFailure: 6,
  InvalidNetworkConfig: 7,
  InvalidNetNs: 8,
  TryAgainLater: 11,
  PluginNotAvailable: 50,
  LimitedConnectivity: 51,
  Internal: 999,
} as const;

export type ErrorObject = { cniVersion?: string; code: number; msg: string; details?: string };

/** The one error class that leaves a plugin: what it says becomes the error object on stdout. */
export class CniError extends Error {
  override readonly name = "CniError";
  readonly code: number;
  readonly msg: string;
  readonly details: string;

  /** `details` is the longer text of the error object; `cause` stays inside the process. */
  constructor(code: number, msg: string, options: { details?: string; cause?: unknown } = {}) {
    super(
      options.details ? `${msg}; ${options.details}` : msg,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.msg = msg;
    this.details = options.details ?? "";
  }

  /** The spec's error object. Go leaves `cniVersion` out although the spec lists it; we put it in. */
  toObject(cniVersion?: string): ErrorObject {
    return {
      ...(cniVersion ? { cniVersion } : {}),
      code: this.code,
      msg: this.msg,
      ...(this.details ? { details: this.details } : {}),
    };
  }
}

/** The text of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A JSON value as messages show it: its text, cut short; a gist where it is nested too deep for text. */
export function shown(value: unknown): string {
  let text: string;
  try {
    // A number too large for JavaScript is Infinity, and null for JSON.
    text = typeof value === "number" ? String(value) : (JSON.stringify(value) ?? String(value));
  } catch {
    text = Array.isArray(value) ? "[...]" : "{...}";
  }
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** Any thrown value as a CniError: itself, or code 999 with its message. */
export function toCniError(error: unknown): CniError {
  return error instanceof CniError
    ? error
    : new CniError(ErrorCode.Internal, messageOf(error), { cause: error });
}

/**
 * One error out of those that a teardown collected: the only one as it is; several with the code of
 * the first and every message, a line each. Undefined when there are none.
 */
export function joinErrors(errors: readonly unknown[]): CniError | undefined {
  if (errors.length === 0) return undefined;
  const all = errors.map(toCniError);
  if (all.length === 1) return all[0];
  return new CniError(all[0]!.code, all.map((e) => e.message).join("\n"), { cause: errors });
}
