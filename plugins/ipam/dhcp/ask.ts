import { close, isErrno, read, writeAll } from "@tscni/sys";
import { connectUnix } from "@tscni/sys/net";
import { CniError, ErrorCode, messageOf } from "@tscni/types";
import { type Answer, maxLineBytes, type Request } from "./protocol.ts";

/**
 * Asks the daemon and waits for its answer; how long that takes is the daemon's business, which ends every attempt
 * at its -resendtimeout. Throws CniError: the daemon's own, or 11 when it is not there or went away.
 */
export function ask(socketPath: string, request: Request): Answer {
  const fd = connect(socketPath);
  try {
    writeAll(fd, new TextEncoder().encode(`${JSON.stringify(request)}\n`));
    const answer = JSON.parse(readLine(fd)) as Answer;
    if ("error" in answer) throw new CniError(answer.error.code, answer.error.msg, answer.error);
    return answer;
  } catch (error) {
    if (error instanceof CniError) throw error;
    const details = messageOf(error);
    throw new CniError(ErrorCode.TryAgainLater, `error calling the DHCP daemon at ${socketPath}`, {
      details,
    });
  } finally {
    close(fd);
  }
}

/** Nobody listens at the socket, or it is not for us. */
export class DaemonUnreachable extends CniError {}

function connect(path: string): number {
  try {
    return connectUnix(path);
  } catch (error) {
    const missing = isErrno(error, "ENOENT", "ENOTDIR", "ECONNREFUSED");
    const hint = missing ? "nobody listens there: is `dhcp daemon` running?" : "";
    throw new DaemonUnreachable(
      ErrorCode.TryAgainLater,
      `error dialing DHCP daemon: ${messageOf(error)}`,
      hint ? { details: hint } : {},
    );
  }
}

function readLine(fd: number): string {
  const pieces: Uint8Array[] = [];
  for (let length = 0; length <= maxLineBytes; ) {
    const buffer = new Uint8Array(8 << 10);
    const count = read(fd, buffer);
    if (count === 0) throw new Error("it hung up without an answer");
    const piece = buffer.subarray(0, count);
    pieces.push(piece);
    length += count;
    if (piece.at(-1) === 0x0a) return textOf(pieces, length);
  }
  throw new Error(`its answer is longer than ${maxLineBytes} bytes`);
}

function textOf(pieces: readonly Uint8Array[], length: number): string {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return new TextDecoder().decode(whole);
}
