import { CniError, ErrorCode } from "./errors.ts";

/*
 * Loops instead of regular expressions, here and in version.ts and @tscni/addr: every call of a plugin comes this
 * way once, and compiling an expression for one match takes 20 to 50 µs.
 */

/** What the spec allows in container ids and network names: `^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`. */
function isIdentifier(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    const isAlphanumeric = (c >= "a" && c <= "z") || (c >= "A" && c <= "Z") || (c >= "0" && c <= "9");
    if (!isAlphanumeric && (i === 0 || (c !== "_" && c !== "." && c !== "-"))) return false;
  }
  return text !== "";
}

/** Throws code 3 for an empty container id, code 4 for one with characters the spec forbids. */
export function verifyContainerId(id: string): void {
  if (id === "") throw new CniError(ErrorCode.UnknownContainer, "missing containerID");
  if (!isIdentifier(id))
    throw new CniError(ErrorCode.InvalidEnvironmentVariables, "invalid characters in containerID", {
      details: id,
    });
}

/** Throws code 7 for a network name that is missing or has characters the spec forbids. */
export function verifyNetworkName(name: string): void {
  if (name === "") throw new CniError(ErrorCode.InvalidNetworkConfig, "missing network name:");
  if (!isIdentifier(name))
    throw new CniError(ErrorCode.InvalidNetworkConfig, "invalid characters found in network name", {
      details: name,
    });
}

/** IFNAMSIZ of linux/if.h less the NUL: an interface name has at most 15 bytes. */
export const maxInterfaceNameBytes = 15;

/**
 * Throws code 4 for a name that the kernel would refuse (net/core/dev.c dev_valid_name): empty, longer
 * than 15 bytes, "." or "..", or with "/", ":" or white space in it.
 */
export function verifyInterfaceName(name: string): void {
  const problem = interfaceNameProblem(name);
  if (problem)
    throw new CniError(ErrorCode.InvalidEnvironmentVariables, problem, name === "" ? {} : { details: name });
}

export function interfaceNameProblem(name: string): string | undefined {
  if (name === "") return "interface name is empty";
  if (new TextEncoder().encode(name).length > maxInterfaceNameBytes) return "interface name is too long";
  if (name === "." || name === "..") return "interface name is . or ..";
  if (hasForbiddenCharacter(name)) return "interface name contains / or : or whitespace characters";
  return undefined;
}

/** "/", ":", NUL, or white space as Go's unicode.IsSpace has it. */
function hasForbiddenCharacter(name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const c = name[i]!;
    if (c === "/" || c === ":" || c === "\0" || c === "\u0085" || c.trim() === "") return true;
  }
  return false;
}

/**
 * `true` under this key of a CHECK's config asks for repair first. A plugin that does not know the key, as any
 * that is not ours, only checks. docs/decisions/0008
 */
export const repairKey = "tscni/repair";

/**
 * A DEL's config has under this key the attachments of the same network whose DELs follow at once, as GC's list has
 * them. A plugin may take away in one transaction what all of them have; one that does not know the key deletes
 * the one that it was asked to delete. docs/decisions/0009
 */
export const batchKey = "tscni/deleted-next";
