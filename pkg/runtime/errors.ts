import { type CniError, messageOf, toCniError } from "@tscni/types";

/**
 * What went wrong, for programs to branch on:
 * - `invalid-argument`: a container id, a namespace or labels that no plugin could be given; nothing was done
 * - `not-initialized`: fewer networks are loaded than the minimum
 * - `invalid-config`: a config that can't be used; `read-failed`: one that can't be read
 * - `invalid-result`: a plugin's result contradicts itself
 * - `not-ready`, `setup-failed`, `check-failed`, `remove-failed`, `gc-failed`: plugins said no; `failures` has what each said
 */
export type NetworkingErrorCode =
  | "invalid-argument"
  | "not-initialized"
  | "invalid-config"
  | "read-failed"
  | "invalid-result"
  | "not-ready"
  | "setup-failed"
  | "check-failed"
  | "remove-failed"
  | "gc-failed";

/** What one network, or one plugin of it, reported. */
export interface NetworkFailure {
  network: string;
  /** The plugin's type, where one plugin was asked at a time (status). */
  plugin?: string;
  /** `error.code` is the spec's, https://www.cni.dev/docs/spec/#error */
  error: CniError;
}

/** The one class of errors that {@link Networking} throws, beside what an AbortSignal gives as its reason. */
export class NetworkingError extends Error {
  override readonly name = "NetworkingError";
  readonly code: NetworkingErrorCode;
  /** In the order of the networks; empty when no plugin was asked. */
  readonly failures: readonly NetworkFailure[];

  constructor(
    code: NetworkingErrorCode,
    message: string,
    options: { failures?: readonly NetworkFailure[]; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.failures = options.failures ?? [];
  }
}

/** Whether an error is one of ours, of one of the codes if any are given. */
export function isNetworkingError(error: unknown, ...codes: NetworkingErrorCode[]): error is NetworkingError {
  return error instanceof NetworkingError && (codes.length === 0 || codes.includes(error.code));
}

/** One error out of what several networks reported, a line each. */
export function failed(
  code: NetworkingErrorCode,
  what: string,
  failures: readonly NetworkFailure[],
): NetworkingError {
  const lines = failures.map(failureText);
  const text = lines.length === 1 ? ` ${lines[0]}` : lines.map((line) => `\n- ${line}`).join("");
  return new NetworkingError(code, `${what}:${text}`, { failures, cause: failures[0]?.error });
}

function failureText({ network, plugin, error }: NetworkFailure): string {
  const where = plugin === undefined ? `network "${network}"` : `network "${network}", plugin "${plugin}"`;
  return `${where}, code ${error.code}: ${error.message}`;
}

export const failureOf = (network: string, error: unknown): NetworkFailure => ({
  network,
  error: toCniError(error),
});

export const invalidConfig = (what: string, error: unknown): NetworkingError =>
  new NetworkingError("invalid-config", `${what}: ${messageOf(error)}`, { cause: error });
