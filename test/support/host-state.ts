import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { commandIn, ip, type NamespaceLike, run } from "./command.ts";

export interface HostState {
  links: unknown[];
  addresses: unknown[];
  routes: unknown[];
  rules: unknown[];
  nftables: string;
  /** Path to content, of everything below the folders asked for. */
  files: Record<string, string>;
}

/**
 * What a namespace (the caller's own when undefined) and some folders hold, without what changes by itself
 * (counters, lifetimes, carrier). Take one before and one after, and expect them equal: nothing stays.
 */
export function hostState(options: { ns?: NamespaceLike; folders?: readonly string[] } = {}): HostState {
  const { ns, folders = [] } = options;
  const both = (...args: string[]) => ["-4", "-6"].flatMap((family) => ip(ns, family, ...args));
  return {
    links: ip(ns, "link").map((l) => ({
      ...pick(l, ["ifindex", "ifname", "mtu", "master", "address", "ifalias"]),
      up: l.flags.includes("UP"),
      promiscuity: l.promiscuity,
      kind: l.linkinfo?.info_kind,
    })),
    addresses: ip(ns, "addr").flatMap((l) =>
      l.addr_info.map((a: object) => ({ dev: l.ifname, ...pick(a, ["local", "prefixlen", "scope"]) })),
    ),
    routes: both("route", "show", "table", "all").map((r) =>
      pick(r, ["type", "dst", "gateway", "dev", "table", "metric", "scope", "prefsrc"]),
    ),
    rules: both("rule").map((r) => pick(r, ["priority", "src", "dst", "table"])),
    nftables: Bun.which("nft") ? run(...commandIn(ns, ["nft", "list", "ruleset"])) : "",
    files: Object.fromEntries(folders.flatMap((folder) => [...filesBelow(folder)])),
  };
}

const pick = (object: object, keys: readonly string[]): object =>
  Object.fromEntries(Object.entries(object).filter(([key]) => keys.includes(key)));

function* filesBelow(path: string): Generator<[string, string]> {
  const type = lstatSync(path, { throwIfNoEntry: false });
  if (type === undefined) return;
  if (!type.isDirectory()) {
    yield [path, type.isFile() ? readFileSync(path, "latin1") : "special"];
    return;
  }
  yield [path, "folder"];
  for (const name of readdirSync(path).sort()) yield* filesBelow(join(path, name));
}
