import { CniError, ErrorCode } from "./errors.ts";

/** What the spec allows in container ids and network names. */
const identifier = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

/** Throws code 3 for an empty container id, code 4 for one with characters the spec forbids. */
export function verifyContainerId(id: string): void {
  if (id === "") throw new CniError(ErrorCode.UnknownContainer, "missing containerID");
  if (!identifier.test(id))
    throw new CniError(ErrorCode.InvalidEnvironmentVariables, "invalid characters in containerID", {
      details: id,
    });
}

/** Throws code 7 for a network name that is missing or has characters the spec forbids. */
export function verifyNetworkName(name: string): void {
  if (name === "") throw new CniError(ErrorCode.InvalidNetworkConfig, "missing network name:");
  if (!identifier.test(name))
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
  if (/[/:\s\u0085\0]/u.test(name)) return "interface name contains / or : or whitespace characters";
  return undefined;
}
