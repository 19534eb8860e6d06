import { decodeConf, type Problem } from "@tscni/conf";
import {
  batchKey,
  CniError,
  decodePrevResult,
  ErrorCode,
  messageOf,
  type Result,
  repairKey,
  shown,
} from "@tscni/types";
import type { Call, Plugin, ValidAttachment } from "./plugin.ts";
import { type Request, valueAt, verifyVersion } from "./request.ts";
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
      return deleteAll(plugin, call, request);
    case "CHECK":
      if (request.json[repairKey] === true) await plugin.repair?.(call);
      return plugin.check(call);
    case "STATUS":
      return plugin.status(call);
    case "GC":
      return plugin.gc(call);
  }
}

/** DEL, and before it what the next ones gain by being told of; failing in that is no hindrance to either. */
async function deleteAll(plugin: Plugin, call: Call<unknown>, request: Request): Promise<void> {
  if (plugin.delNext && Object.hasOwn(request.json, batchKey)) {
    try {
      await plugin.delNext(call, attachmentsUnder(batchKey, request.json));
    } catch (error) {
      call.warn(`not done in one go: ${messageOf(error)}`);
    }
  }
  return plugin.del(call);
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
  const json = valueAt(request.json, "prevResult");
  if (json === undefined) return undefined;
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
  const given = Object.keys(json).map((key) => key.toLowerCase());
  const key = ["cni.dev/valid-attachments", "cni.dev/attachments"].find((name) => given.includes(name));
  return key === undefined ? undefined : attachmentsUnder(key, json);
}

function attachmentsUnder(key: string, json: Record<string, unknown>): ValidAttachment[] {
  const list = valueAt(json, key) ?? [];
  if (!Array.isArray(list))
    throw new CniError(ErrorCode.DecodingFailure, `${key}: ${shown(list)} is not a list`);
  return list.map((item: unknown, i) => {
    const [containerID, ifname] = ["containerID", "ifname"].map((name) =>
      typeof item === "object" && item !== null ? valueAt(item as Record<string, unknown>, name) : undefined,
    );
    if (typeof containerID === "string" && typeof ifname === "string") return { containerID, ifname };
    const msg = `${key}[${i}]: ${shown(item)} is not an attachment, {"containerID": "...", "ifname": "..."}`;
    throw new CniError(ErrorCode.DecodingFailure, msg);
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
