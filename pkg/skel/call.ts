import { decodeConf, type Problem } from "@tscni/conf";
import { CniError, decodePrevResult, ErrorCode, messageOf, type Result } from "@tscni/types";
import type { Call, Plugin, ValidAttachment } from "./plugin.ts";
import { type Request, verifyVersion } from "./request.ts";
import { Undo } from "./undo.ts";

/**
 * Runs one verb of a plugin: version gate, config, previous result, the verb. An ADD that fails, or whose
 * result `deliver` cannot hand over, is taken back before its error is thrown.
 */
export async function callPlugin(
  plugin: Plugin,
  request: Request,
  warn: (message: string) => void,
  deliver: (result: Result) => void,
): Promise<void> {
  verifyVersion(plugin, request.command, request.cniVersion);
  const call = callOf(plugin, request, warn);
  switch (request.command) {
    case "ADD": {
      const undo = new Undo();
      try {
        deliver(await plugin.add(call, undo));
      } catch (error) {
        throw withCleanup(error, await undo.run());
      }
      return;
    }
    case "DEL":
      return plugin.del(call);
    case "CHECK":
      return plugin.check(call);
    case "STATUS":
      return plugin.status(call);
    case "GC":
      return plugin.gc(call);
    default:
      throw new CniError(ErrorCode.InvalidEnvironmentVariables, `unknown CNI_COMMAND: ${request.command}`);
  }
}

/** What the verb is told. DEL and GC take a config with wrong values, as long as they don't need these. */
export function callOf(plugin: Plugin, request: Request, warn: (message: string) => void): Call<unknown> {
  const lenient = request.command === "DEL" || request.command === "GC";
  const report = (problem: Problem) => warn(`ignoring ${problem.path}: ${problem.message}`);
  const conf = decodeConf(plugin.conf, request.json, {
    ...(lenient ? { lenient: report } : {}),
    ...(plugin.delNeeds ? { needs: plugin.delNeeds } : {}),
  });
  const { network, cniVersion, containerId, ifName, netns, args, path, stdin } = request;
  return {
    conf,
    network,
    cniVersion,
    containerId,
    ifName,
    netns,
    args,
    path,
    stdin,
    prevResult: prevResultOf(request, lenient ? warn : undefined),
    validAttachments: request.command === "GC" ? validAttachmentsOf(request.json) : undefined,
    warn,
  };
}

function prevResultOf(request: Request, warn?: (message: string) => void): Result | undefined {
  const name = Object.keys(request.json).findLast((key) => key.toLowerCase() === "prevresult");
  const json = name === undefined ? null : request.json[name];
  if (json === null || json === undefined) return undefined;
  try {
    return decodePrevResult(json, request.cniVersion);
  } catch (error) {
    if (warn === undefined) throw error;
    warn(`ignoring prevResult: ${messageOf(error)}`);
    return undefined;
  }
}

/**
 * The list of GC. Absent means that nothing is known; an empty list and null (what libcni makes of an empty
 * one) mean that nothing is valid. The second key is what libcni called it before the spec did.
 */
function validAttachmentsOf(json: Record<string, unknown>): ValidAttachment[] | undefined {
  const key = ["cni.dev/valid-attachments", "cni.dev/attachments"].find((k) => Object.hasOwn(json, k));
  if (key === undefined) return undefined;
  const list = json[key] ?? [];
  if (!Array.isArray(list)) throw new CniError(ErrorCode.DecodingFailure, `${key}: not a list`);
  return list.map((item: Record<string, unknown> | null, i) => {
    const { containerID, ifname } = item ?? {};
    if (typeof containerID !== "string" || typeof ifname !== "string")
      throw new CniError(
        ErrorCode.DecodingFailure,
        `${key}[${i}]: needs containerID and ifname, both strings`,
      );
    return { containerID, ifname };
  });
}

/** The error of an ADD, with what could not be taken back added to its details. */
function withCleanup(error: unknown, failures: string[]): unknown {
  if (failures.length === 0) return error;
  const left = `could not be taken back: ${failures.join("; ")}`;
  if (error instanceof CniError)
    return new CniError(error.code, error.msg, {
      details: error.details ? `${error.details}; ${left}` : left,
      cause: error,
    });
  return new CniError(ErrorCode.Internal, messageOf(error), { details: left, cause: error });
}
