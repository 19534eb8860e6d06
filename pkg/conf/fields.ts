import { cidrText, ipText, parseCidr, parseIp } from "@tscni/addr";
import type { Route } from "@tscni/types";
import type { Infer } from "./schema.ts";
import * as v from "./schema.ts";

/*
 * Building blocks of config schemas. A message completes the sentence that starts with the value:
 * `bridge.mtu: "big"` + " is not a whole number".
 */

/** A whole number from `min` to `max`. */
export function integer(min: number, max: number = Number.MAX_SAFE_INTEGER): v.Schema<number> {
  const whole = v.check(v.number(), Number.isInteger, "is not a whole number", { type: "integer" });
  if (max !== Number.MAX_SAFE_INTEGER)
    return v.check(whole, (n) => n >= min && n <= max, `is not between ${min} and ${max}`, {
      minimum: min,
      maximum: max,
    });
  const exact = v.check(whole, (n) => n <= max, "is too large a number", {});
  return v.check(exact, (n) => n >= min, `is below ${min}`, { minimum: min });
}

/** One of some names; "" among them is not offered. `problem` says what is wrong, in the reference's words. */
export function oneOf<const T extends string>(names: readonly T[], problem: string): v.Schema<T> {
  const offered = names.filter((name) => name !== "");
  const all = `${offered.slice(0, -1).join(", ")} or ${offered.at(-1)}`;
  return v.check(
    v.string() as v.Schema<T>,
    (name) => names.includes(name),
    (name) => `${problem} ${JSON.stringify(name)}: it can be ${all}`,
    { enum: names },
  );
}

/** Bytes; 0 leaves it to the kernel, and 65535 is all that an IP packet can have. */
export const mtu = (): v.Schema<number> => integer(0, 65535);

/** IPv4 or IPv6 text. "" counts as absent, as in the Go plugins. */
export const ipAddress = () =>
  v.check(v.string(), (text) => text === "" || parseIp(text) !== undefined, "is not an IP address");

/** An address with prefix length. */
export const cidr = () =>
  v.check(v.string(), (text) => parseCidr(text) !== undefined, "is not a CIDR address");

/** An Ethernet address, as text in any case with ":" or "-" between the bytes. "" counts as absent. */
export const mac = () => v.check(v.string(), (text) => text === "" || isMac(text), "is not a MAC address");

export function isMac(text: string): boolean {
  if (text.length !== 17) return false;
  for (let i = 0; i < 17; i++) {
    const isSeparator = text[i] === ":" || text[i] === "-";
    if (i % 3 === 2 ? !isSeparator : !isHexDigit(text.charCodeAt(i))) return false;
  }
  return true;
}

const isHexDigit = (code: number): boolean =>
  (code >= 0x30 && code <= 0x39) || ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x66);

/** `dns` of a network config, handed into results. https://www.cni.dev/docs/spec/#dns */
export const dnsConf = () =>
  v.object({
    nameservers: v.optional(v.array(v.string())),
    domain: v.optional(v.string()),
    search: v.optional(v.array(v.string())),
    options: v.optional(v.array(v.string())),
  });

/** A route as results and IPAM configs have it. */
export const routeConf = () =>
  v.object({
    dst: cidr(),
    gw: v.optional(ipAddress()),
    mtu: v.optional(integer(0)),
    advmss: v.optional(integer(0)),
    priority: v.optional(integer(0)),
    table: v.optional(integer(0)),
    scope: v.optional(integer(0, 255)),
  });

/** Routes of a config as results have them, in canonical text; keys that were not given are absent. */
export const routesOf = (routes: readonly Infer<ReturnType<typeof routeConf>>[] = []): Route[] =>
  routes.map(({ dst, gw, ...rest }) => ({
    dst: cidrText(parseCidr(dst)!),
    ...(gw ? { gw: ipText(parseIp(gw)!) } : {}),
    ...(rest as Omit<Route, "dst" | "gw">),
  }));

/** The IPAM plugin's part: ours to read only as far as the name of the plugin that reads the rest. */
export const ipamConf = () => v.looseObject({ type: v.optional(v.string(), "") });

/** Keys of every plugin config, whoever adds them: the administrator, libcni or the runtime. */
const commonKeys = {
  cniVersion: v.optional(v.string()),
  name: v.optional(v.string()),
  type: v.optional(v.string()),
  capabilities: v.optional(v.record(v.unknown())),
  args: v.optional(v.looseObject({})),
  runtimeConfig: v.optional(v.looseObject({})),
  prevResult: v.optional(v.unknown()),
  ipam: v.optional(v.looseObject({})),
  dns: v.optional(dnsConf()),
  "cni.dev/valid-attachments": v.optional(v.unknown()),
  "cni.dev/attachments": v.optional(v.unknown()),
};

type CommonKeys = typeof commonKeys;

/** Declares a plugin's config: its own keys, beside those that every plugin config may have. */
export function confSchema<const Own extends Readonly<Record<string, v.Schema>>>(own: Own) {
  return v.object({ ...commonKeys, ...own } as Omit<CommonKeys, keyof Own> & Own);
}
