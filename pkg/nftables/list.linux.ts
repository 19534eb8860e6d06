import { startTool } from "@tscni/sys";
import { NftError, nftErrorOf, nftMissing } from "./error.ts";
import type { NftText } from "./text.ts";

/** An object as `nft -j` shows it: `{ "chain": {...} }`, `{ "rule": {...} }` and so on. */
// biome-ignore lint/suspicious/noExplicitAny: the shape is libnftables-json(5)'s and depends on the object
export type NftObject = Record<string, any>;

const timeoutMs = 60_000;

/**
 * What `nft -j list ...` says of one object, such as nft`table inet tscni_masquerade`: a flat list. Undefined when it
 * is not there. For CHECK and GC: it reads everything in it. Throws NftError.
 */
export function listNft(what: NftText): NftObject[] | undefined {
  const tool = startTool("nft", ["-j", "-n", "-a", "list", ...String(what).split(" ")], "", timeoutMs);
  if ("missing" in tool) throw nftMissing(tool.missing);
  const { exitCode, stdout, stderr } = tool.wait();
  if (exitCode === 0) return JSON.parse(stdout).nftables as NftObject[];
  const error = exitCode === undefined ? new NftError("failed", "nft was killed") : nftErrorOf(stderr);
  if (error.problem === "absent") return undefined;
  throw error;
}

/** An element of a set or map, out of what {@link listNft} gives. */
export interface NftElement {
  /** The key: text or number, or several of them where it is concatenated. */
  readonly key: unknown;
  /** A map's value. */
  readonly data: unknown;
  readonly comment: string | undefined;
}

/** The elements of the set or map of that name in a listing; none when it is not there. */
export function elementsOf(listing: readonly NftObject[], name: string): NftElement[] {
  for (const object of listing) {
    const set = object.map ?? object.set;
    if (set?.name === name) return (set.elem ?? []).map(elementOf);
  }
  return [];
}

/** A map's element is [key, data], and a key is bare, or { elem: { val, comment } }, or { concat: [...] }. */
function elementOf(raw: unknown): NftElement {
  const [left, data] = Array.isArray(raw) ? raw : [raw, undefined];
  const { elem } = left as { elem?: { val: unknown; comment?: string } };
  const key = elem === undefined ? left : elem.val;
  const parts = typeof key === "object" ? (key as { concat?: unknown[] }).concat : undefined;
  return { key: parts ?? key, data, comment: elem?.comment };
}
