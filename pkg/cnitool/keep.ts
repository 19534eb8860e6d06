import { readFileSync } from "node:fs";
import type { Attachment, AttachmentId } from "@tscni/libcni";
import { messageOf, verifyContainerId, verifyInterfaceName } from "@tscni/types";
import { absolute, type Context, ifNameOf } from "./context.ts";

/** What `--keep` names: a container with all of its interfaces, or one interface of it. */
interface Kept {
  containerId: string;
  ifName?: string;
}

/**
 * The attachments that gc has to keep, out of `--keep` and `--keep-file`; undefined when neither is given. A
 * container without an interface stands for all that the cache knows of it on the network, and for the
 * default interface, should the cache not know it. Throws for a file that cannot be read or understood, before
 * anything is deleted.
 */
export function keptBy(context: Context, cached: readonly Attachment[]): AttachmentId[] | undefined {
  const { flags } = context;
  const files = flags.all("keep-file");
  if (flags.all("keep").length + files.length === 0) return undefined;
  const kept = [
    ...flags.all("keep").map((text) => parseKept(text, "--keep")),
    ...files.flatMap((file) => listed(context, file)),
  ];
  const pairs = kept.flatMap(({ containerId, ifName }) => {
    if (ifName !== undefined) return [{ containerId, ifName }];
    const known = cached.filter((a) => a.containerId === containerId).map((a) => a.ifName);
    return [...new Set([...known, ifNameOf(context)])].map((name) => ({ containerId, ifName: name }));
  });
  return [...new Map(pairs.map((pair) => [`${pair.containerId}:${pair.ifName}`, pair])).values()];
}

/** What a keep file lists. That it lists nothing is honoured, but said: it may be an accident. */
function listed(context: Context, file: string): Kept[] {
  const kept = readKeepFile(context, file);
  if (kept.length === 0) context.io.stderr(`Note: ${file} lists nothing to keep.\n`);
  return kept;
}

function readKeepFile(context: Context, file: string): Kept[] {
  const text = readFileSync(absolute(context, file), "utf8");
  if (/^\s*[[{]/.test(text)) return parseKeptJson(text, file);
  return text
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .flatMap((line, i) => (line === "" ? [] : [parseKept(line, `${file}:${i + 1}`)]));
}

/** A list of `{"containerID", "ifname"}` (the form of cni.dev/valid-attachments) or of what attachments --json prints. */
function parseKeptJson(text: string, file: string): Kept[] {
  const list = parseList(text, file);
  return list.map((item, i) => {
    const {
      containerID,
      containerId = containerID,
      ifname,
      ifName = ifname,
    } = (item ?? {}) as Record<string, unknown>;
    if (typeof containerId !== "string" || (ifName !== undefined && typeof ifName !== "string"))
      throw new Error(`${file}: [${i}] is not an object with "containerID" and "ifname"`);
    return verified({ containerId, ...(ifName === undefined ? {} : { ifName }) }, `${file}: [${i}]`);
  });
}

function parseList(text: string, file: string): unknown[] {
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value)) return value;
  } catch (error) {
    throw new Error(`${file}: ${messageOf(error)}`);
  }
  throw new Error(`${file}: expected a JSON list of attachments`);
}

function parseKept(text: string, where: string): Kept {
  const [containerId = "", ifName, ...more] = text.split(":");
  if (more.length > 0)
    throw new Error(`${where}: ${JSON.stringify(text)} is not CONTAINERID or CONTAINERID:IFNAME`);
  return verified(ifName === undefined ? { containerId } : { containerId, ifName }, where);
}

function verified(kept: Kept, where: string): Kept {
  try {
    verifyContainerId(kept.containerId);
    if (kept.ifName !== undefined) verifyInterfaceName(kept.ifName);
  } catch (error) {
    throw new Error(`${where}: ${messageOf(error)}`);
  }
  return kept;
}
