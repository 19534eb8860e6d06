import { type Ip, ipText, parseCidr, parseIp } from "@tscni/addr";
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

/**
 * The value of `IP` in CNI_ARGS (`K=V;K2=V2`). Names are matched exactly; others are an error unless
 * `IgnoreUnknown` is true, which Kubernetes runtimes set. Throws CniError 4.
 */
function ipOfArgs(cniArgs: string): string | undefined {
  if (cniArgs === "") return undefined;
  const pairs = cniArgs.split(";").map((pair) => {
    const [key = "", value, ...more] = pair.split("=");
    if (value === undefined || more.length > 0) throw wrongArgs(`ARGS: invalid pair ${JSON.stringify(pair)}`);
    return { key, value };
  });
  const lastOf = (name: string) => pairs.findLast(({ key }) => key === name)?.value;
  const ignoreUnknown = ["1", "true"].includes((lastOf("IgnoreUnknown") ?? "").toLowerCase());
  const unknown = pairs.filter(({ key }) => key !== "IP" && key !== "IgnoreUnknown");
  if (unknown.length > 0 && !ignoreUnknown)
    throw wrongArgs(
      `ARGS: unknown args [${unknown.map(({ key, value }) => JSON.stringify(`${key}=${value}`)).join(" ")}]`,
    );
  const ip = lastOf("IP") || undefined;
  if (ip !== undefined && ipOf(ip) === undefined)
    throw wrongArgs(`ARGS: IP: ${JSON.stringify(ip)} is not an IP address`);
  return ip;
}

const wrongArgs = (message: string): CniError =>
  new CniError(ErrorCode.InvalidEnvironmentVariables, message, { details: "in CNI_ARGS" });
