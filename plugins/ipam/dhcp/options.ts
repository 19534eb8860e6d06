import { CniError, ErrorCode, shown } from "@tscni/types";
import { type DhcpConf, optionCode } from "./conf.ts";

/** What the daemon is to send of options: their codes and texts, and the codes to ask for. */
export interface Wishes {
  provide: [code: number, text: string][];
  request: number[];
}

const [hostName, optionBytes] = [12, 255];

/**
 * Subnet mask and routers, as the reference; and name servers, domain and search list, which it leaves out. Not
 * classless routes (121): where they are sent, they stand in for the routers.
 */
const requestedByDefault: readonly number[] = [3, 1, 6, 15, 119];

/**
 * What the config and CNI_ARGS say. A pod's name is sent as its host name unless the config provides that option,
 * if only with an empty value. Throws CniError 4 for a value in CNI_ARGS that is too long.
 */
export function wishesOf(ipam: NonNullable<DhcpConf["ipam"]>, cniArgs: string): Wishes {
  const args = argumentsOf(cniArgs);
  const provide = new Map<number, string>();
  const pod = args.get("K8S_POD_NAME");
  if (pod && !ipam.provide?.some(({ option }) => optionCode(option) === hostName)) provide.set(hostName, pod);
  for (const { option, value, fromArg } of ipam.provide ?? []) {
    const code = optionCode(option)!;
    if (value !== "") provide.set(code, value);
    const given = args.get(fromArg);
    if (!given) continue;
    if (new TextEncoder().encode(given).length > optionBytes)
      throw new CniError(
        ErrorCode.InvalidEnvironmentVariables,
        `value too long for option ${shown(option)} from CNI_ARGS ${shown(fromArg)}: ${shown(given)}`,
      );
    provide.set(code, given);
  }
  return { provide: [...provide], request: requestOf(ipam) };
}

function requestOf({ request = [] }: NonNullable<DhcpConf["ipam"]>): number[] {
  const codes: number[] = [];
  for (const { option } of request)
    if (option !== undefined && option !== "") codes.push(optionCode(option)!);
  if (!request.some(({ skipDefault }) => skipDefault)) codes.push(...requestedByDefault);
  return [...new Set(codes)];
}

/** CNI_ARGS without judging it, as the reference: what is no pair is nothing, and a value may hold "=". */
function argumentsOf(text: string): Map<string, string> {
  const args = new Map<string, string>();
  for (const pair of text.split(";")) {
    const equals = pair.indexOf("=");
    if (equals > 0) args.set(pair.slice(0, equals), pair.slice(equals + 1));
  }
  return args;
}
