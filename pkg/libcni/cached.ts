import { field, goJson, isObject, sortKeys } from "./json.ts";
import type { Attachment, Failure, JsonObject } from "./model.ts";

export type Entry = Omit<Attachment, "file">;

const kind = "cniCacheV1";

/**
 * The text of a cache file, byte for byte as the Go library writes it (libcni/api.go, cachedInfo). An attachment
 * that is not whole has one key more, `failed`, which Go ignores; its DEL then works from `result`, which
 * holds what the plugins before the failing one had said.
 */
export function encodeCached(entry: Entry): string {
  const has = (object: object) => Object.keys(object).length > 0;
  return goJson({
    kind,
    containerId: entry.containerId,
    config: Buffer.from(entry.config, "utf8").toString("base64"),
    ifName: entry.ifName,
    networkName: entry.network,
    ...(entry.netns === "" ? {} : { netns: entry.netns }),
    ...(entry.args.length === 0 ? {} : { cniArgs: entry.args }),
    ...(has(entry.capabilityArgs) ? { capabilityArgs: sortKeys(entry.capabilityArgs) } : {}),
    ...(entry.result && has(entry.result) ? { result: sortKeys(entry.result) } : {}),
    ...(entry.failed ? { failed: entry.failed } : {}),
  });
}

/** Reads a cache file's JSON. Throws an Error that says what is wrong with it. */
export function decodeCached(json: unknown, file: string): Attachment {
  if (!isObject(json)) throw new Error("it is not a JSON object");
  if (json.kind !== kind) throw new Error(`its kind is ${goJson(json.kind ?? null)}, not "${kind}"`);
  const failed = failureOf(json.failed);
  const result = objectOf(json, "result");
  return {
    network: textOf(json, "networkName"),
    containerId: textOf(json, "containerId"),
    ifName: textOf(json, "ifName"),
    netns: stringOf(json, "netns"),
    args: argsOf(json.cniArgs ?? []),
    capabilityArgs: objectOf(json, "capabilityArgs") ?? {},
    config: Buffer.from(stringOf(json, "config"), "base64").toString("utf8"),
    ...(result ? { result } : {}),
    file,
    ...(failed ? { failed } : {}),
  };
}

/** Whether it is a result without anything around it, as libcni before 0.8 stored it. */
export function isBareResult(json: JsonObject): boolean {
  return (
    json.kind === undefined &&
    ["cniVersion", "ips", "ip4", "ip6"].some((key) => field(json, key) !== undefined)
  );
}

function textOf(json: JsonObject, key: string): string {
  const text = stringOf(json, key);
  if (text === "") throw new Error(`its ${key} is missing`);
  return text;
}

function stringOf(json: JsonObject, key: string): string {
  const value = json[key] ?? "";
  if (typeof value !== "string") throw new Error(`its ${key} is not a string`);
  return value;
}

function objectOf(json: JsonObject, key: string): JsonObject | undefined {
  const value = json[key] ?? undefined;
  if (value !== undefined && !isObject(value)) throw new Error(`its ${key} is not an object`);
  return value;
}

function argsOf(value: unknown): [string, string][] {
  const isPair = (pair: unknown): pair is [string, string] =>
    Array.isArray(pair) && pair.length === 2 && pair.every((part) => typeof part === "string");
  if (!Array.isArray(value) || !value.every(isPair)) throw new Error("its cniArgs are not pairs of strings");
  return value;
}

/** Never throws: a record that a newer version wrote must not keep a DEL from finding the rest. */
function failureOf(value: unknown): Failure | undefined {
  if (!isObject(value)) return undefined;
  return {
    verb: value.verb === "DEL" ? "DEL" : "ADD",
    plugin: String(value.plugin ?? ""),
    message: String(value.message ?? ""),
  };
}
