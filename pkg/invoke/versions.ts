import { CniError, currentVersion, ErrorCode } from "@tscni/types";
import { type InvokeOptions, invokePlugin, type PluginCall, parseStdout } from "./invoke.ts";

/** What a plugin answers to VERSION: https://www.cni.dev/docs/spec/#version */
export interface VersionInfo {
  cniVersion: string;
  supportedVersions: string[];
}

/** Plugins built against old libraries want these variables even for VERSION. */
const versionCall: PluginCall = {
  command: "VERSION",
  containerId: "",
  netns: "dummy",
  ifName: "dummy",
  args: "",
  path: ["dummy"],
};

/** The spec versions that a plugin supports; one so old that it does not know VERSION supports 0.1.0. */
export async function pluginVersions(file: string, options: InvokeOptions = {}): Promise<VersionInfo> {
  try {
    const stdin = JSON.stringify({ cniVersion: currentVersion });
    return decodeVersionInfo(
      parseStdout(file, versionCall, await invokePlugin(file, versionCall, stdin, options)),
    );
  } catch (error) {
    if (error instanceof CniError && error.msg === "unknown CNI_COMMAND: VERSION")
      return { cniVersion: currentVersion, supportedVersions: ["0.1.0"] };
    throw error;
  }
}

export function decodeVersionInfo(json: unknown): VersionInfo {
  const fail = (what: string) => new CniError(ErrorCode.DecodingFailure, `decoding version info: ${what}`);
  if (typeof json !== "object" || json === null || Array.isArray(json)) throw fail("it is not an object");
  const get = (key: string) =>
    Object.entries(json).findLast(([name]) => name.toLowerCase() === key.toLowerCase())?.[1] ?? undefined;
  const cniVersion: unknown = get("cniVersion") ?? "";
  const supported: unknown = get("supportedVersions") ?? [];
  if (cniVersion === "") throw fail("missing field cniVersion");
  if (typeof cniVersion !== "string") throw fail("cniVersion is not a string");
  if (!Array.isArray(supported) || supported.some((version) => typeof version !== "string"))
    throw fail("supportedVersions is not a list of strings");
  if (supported.length > 0) return { cniVersion, supportedVersions: supported };
  if (cniVersion === "0.2.0") return { cniVersion, supportedVersions: ["0.1.0", "0.2.0"] };
  throw fail("missing field supportedVersions");
}
