/** Every spec version a tscni program speaks, oldest first. https://www.cni.dev/docs/spec/#version */
export const specVersions = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] as const;

export type SpecVersion = (typeof specVersions)[number];

/** The newest version: what VERSION answers as its own, and the shape results have in memory. */
export const currentVersion: SpecVersion = "1.1.0";

/** A config without `cniVersion` is a 0.1.0 config (the key came with 0.2.0). */
export const implicitVersion: SpecVersion = "0.1.0";

export function isSpecVersion(version: string): version is SpecVersion {
  return (specVersions as readonly string[]).includes(version);
}

/**
 * Splits "1", "1.0" or "1.0.0" into numbers, missing parts being 0.
 * Returns undefined for anything else, also for a fourth part.
 */
export function parseVersion(version: string): [number, number, number] | undefined {
  const parts = version.split(".");
  if (parts.length > 3 || !parts.every(isNumber)) return undefined;
  return [Number(parts[0]), Number(parts[1] ?? 0), Number(parts[2] ?? 0)];
}

function isNumber(part: string): boolean {
  for (let i = 0; i < part.length; i++) if (part[i]! < "0" || part[i]! > "9") return false;
  return part !== "" && part.length < 10;
}

/** Whether `version` is `minimum` or newer. A version that cannot be parsed is older than everything. */
export function atLeast(version: string, minimum: string): boolean {
  const have = parseVersion(version);
  const want = parseVersion(minimum);
  if (have === undefined || want === undefined) return false;
  for (let i = 0; i < 3; i++) if (have[i] !== want[i]) return have[i]! > want[i]!;
  return true;
}

/** Versions whose results share one shape, and so may stand in for each other as `prevResult`. */
export const shapeFamilies: readonly (readonly SpecVersion[])[] = [
  ["0.1.0", "0.2.0"],
  ["0.3.0", "0.3.1", "0.4.0"],
  ["1.0.0", "1.1.0"],
];
