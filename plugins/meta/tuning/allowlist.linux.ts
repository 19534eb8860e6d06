import { readTextFileIfPresent } from "@tscni/sys";
import { CniError, ErrorCode, messageOf } from "@tscni/types";
import type { Sysctl } from "./sysctls.ts";

/** The administrator's list, the reference's: a regular expression a line. */
export const allowlistFile = "/etc/cni/tuning/allowlist.conf";

/** Throws CniError 7 unless the allowlist, where there is one, has every key. */
export function verifyAllowed(sysctls: readonly Sysctl[]): void {
  if (sysctls.length === 0) return;
  const text = readTextFileIfPresent(allowlistFile);
  if (text === undefined) return;
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const expressions = lines.map(expressionOf);
  for (const { key } of sysctls) {
    if (expressions.some((expression) => expression.test(key))) continue;
    const msg = `Sysctl ${key} is not allowed. Only the following sysctls are allowed: [${lines.join(" ")}]`;
    throw new CniError(ErrorCode.InvalidNetworkConfig, msg);
  }
}

/**
 * A line is written for Go (RE2). Where JavaScript would read it as something else, and perhaps allow more, it is
 * refused: classes such as [[:alpha:]].
 */
function expressionOf(line: string): RegExp {
  const ignoreCase = line.startsWith("(?i)");
  try {
    if (line.includes("[:")) throw new SyntaxError("classes such as [[:alpha:]] are not supported");
    return new RegExp(ignoreCase ? line.slice(4) : line, ignoreCase ? "i" : "");
  } catch (error) {
    throw new CniError(
      ErrorCode.InvalidNetworkConfig,
      `${allowlistFile}: ${JSON.stringify(line)} is not a regular expression`,
      { details: messageOf(error) },
    );
  }
}
