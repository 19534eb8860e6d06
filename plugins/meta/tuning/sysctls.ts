import { CniError, ErrorCode } from "@tscni/types";
import type { TuningConf } from "./conf.ts";
import { repeatedKey } from "./repeated.ts";

/** A sysctl to set. */
export interface Sysctl {
  /** As the config has it. */
  key: string;
  /** Below /proc/sys, with slashes. */
  path: string;
  value: string;
}

/**
 * The sysctls of a config, those of args.cni over the others, as the reference reads their keys: every dot is a
 * slash, and the first IFNAME stands for the interface. `text` is the config as it came, where a key may stand
 * twice. Throws CniError 7 for that and for what is not below net.
 */
export function sysctlsOf(conf: TuningConf, ifName: string, text: string): Sysctl[] {
  const own = conf.sysctl ?? {};
  const byPath = new Map<string, Sysctl>();
  for (const key in own) {
    const path = pathOf(key, ifName);
    if (byPath.has(path) || mayBeRepeated(text, key)) refuseRepeated(text, byPath.get(path)?.key);
    byPath.set(path, { key, path, value: own[key]! });
  }
  const overriding = conf.args?.cni?.sysctl ?? {};
  for (const key in overriding) {
    const path = pathOf(key, ifName);
    byPath.set(path, { key, path, value: overriding[key]! });
  }
  return [...byPath.values()];
}

/** Finding out for certain takes longer than all the rest. */
function mayBeRepeated(text: string, key: string): boolean {
  const quoted = JSON.stringify(key);
  return text.indexOf(quoted) !== text.lastIndexOf(quoted) || text.includes("\\");
}

function refuseRepeated(text: string, otherSpelling: string | undefined): void {
  const key = otherSpelling ?? repeatedKey(text, "sysctl");
  if (key === undefined) return;
  throw new CniError(ErrorCode.InvalidNetworkConfig, "duplicated sysctl keys are not allowed", {
    details: key,
  });
}

function pathOf(key: string, ifName: string): string {
  const path = key.replaceAll(".", "/").replace("IFNAME", () => ifName);
  const parts = path.split("/").filter((part) => part !== "");
  if (parts[0] !== "net" || parts.length < 2 || parts.includes("..") || path.includes("\0"))
    throw new CniError(ErrorCode.InvalidNetworkConfig, `invalid net sysctl key: ${JSON.stringify(key)}`);
  return parts.join("/");
}

/** Whether a sysctl is the interface's own (net/ipv4/conf/eth0/...), rather than of the whole namespace. */
export const isOfInterface = (path: string, ifName: string): boolean =>
  path.includes(`/${ifName}/`) || path.endsWith(`/${ifName}`);

/** Values as the kernel shows them: what is in several parts it separates by tabs. */
export const sameValue = (a: string, b: string): boolean => words(a) === words(b);

const words = (value: string): string =>
  value
    .replaceAll("\t", " ")
    .replaceAll("\n", " ")
    .split(" ")
    .filter((word) => word !== "")
    .join(" ");
