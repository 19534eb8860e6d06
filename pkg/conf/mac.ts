import { CniError, ErrorCode } from "@tscni/types";
import { parseCniArgs } from "./args.ts";
import { isMac } from "./fields.ts";

/** `MAC` of CNI_ARGS; undefined when there is none. Throws CniError 4 when it is no MAC address. */
export function macOfArgs(args: string): string | undefined {
  const { MAC } = parseCniArgs(args, ["MAC"]);
  if (MAC && !isMac(MAC))
    throw new CniError(ErrorCode.InvalidEnvironmentVariables, `CNI_ARGS: MAC: "${MAC}" is not a MAC address`);
  return MAC || undefined;
}

/** A MAC address for an interface, in the kernel's spelling. Throws CniError 7 for one of a group (IEEE 802). */
export function interfaceMac(chosen: string | undefined): string | undefined {
  if (!chosen) return undefined;
  if (Number.parseInt(chosen.slice(0, 2), 16) & 1)
    throw new CniError(ErrorCode.InvalidNetworkConfig, `mac: "${chosen}" is a multicast address`);
  return chosen.toLowerCase().replaceAll("-", ":");
}
