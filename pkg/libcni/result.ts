import { decodeResult, encodeResult, implicitVersion, type Result } from "@tscni/types";
import type { JsonObject } from "./model.ts";

/**
 * A result in the shape of a version, for prevResult and the cache. A 0.1.0 or 0.2.0 result without an address is
 * an empty one here, as in Go, where only a conversion from another version fails.
 */
export function encodeFor(result: Result, version: string): JsonObject {
  const legacy = version === "" || version === "0.1.0" || version === "0.2.0";
  if (legacy && result.ips.length === 0)
    return { cniVersion: version || implicitVersion, dns: { ...result.dns } };
  return encodeResult(result, version);
}

/** What cnitool prints: four spaces of indent, as Go. */
export function printResult(result: Result, version: string): string {
  return JSON.stringify(encodeFor(result, version), null, 4);
}

/** A stored result, which may be of another version than the list has now. Throws CniError. */
export const readResult = (stored: JsonObject): Result => decodeResult(stored, implicitVersion);
