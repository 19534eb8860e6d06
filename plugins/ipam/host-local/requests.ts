import { type Ip, ipText, parseCidr, parseIp } from "@tscni/addr";
import { parseCniArgs } from "@tscni/conf";
import { CniError, ErrorCode } from "@tscni/types";
import type { HostLocalConf } from "./conf.ts";

/**
 * The addresses asked for by name, from everyone who may ask: CNI_ARGS `IP=`, `args.cni.ips` and the `ips`
 * capability. All of them count; an address that is named twice counts once.
 */
export function requestedIps(conf: HostLocalConf, cniArgs: string): Ip[] {
  const texts = [ipOfArgs(cniArgs), ...(conf.args?.cni?.ips ?? []), ...(conf.runtimeConfig?.ips ?? [])];
  const byText = new Map<string, Ip>();
  for (const text of texts) {
    const ip = text === undefined ? undefined : ipOf(text);
    if (ip) byText.set(ipText(ip), ip);
  }
  return [...byText.values()];
}

const ipOf = (text: string): Ip | undefined => (text.includes("/") ? parseCidr(text)?.ip : parseIp(text));

/** The value of `IP` in CNI_ARGS; `IP=` without a value asks for nothing. Throws CniError 4. */
function ipOfArgs(cniArgs: string): string | undefined {
  const ip = parseCniArgs(cniArgs, ["IP"]).IP || undefined;
  if (ip !== undefined && ipOf(ip) === undefined)
    throw new CniError(
      ErrorCode.InvalidEnvironmentVariables,
      `ARGS: IP: ${JSON.stringify(ip)} is not an IP address`,
    );
  return ip;
}
