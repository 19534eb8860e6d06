import { type Cidr, cidrText, parseCidr, parseIp } from "@tscni/addr";
import { CniError, ErrorCode, shown } from "./errors.ts";
import { atLeast, implicitVersion, isSpecVersion, type SpecVersion, shapeFamilies } from "./version.ts";

/** A link that the plugin made or uses: in the container when it has a `sandbox`, on the host otherwise. */
export interface Interface {
  name: string;
  /** Lower case, colon separated. */
  mac?: string;
  /** Bytes. */
  mtu?: number;
  /** The namespace's path. */
  sandbox?: string;
  socketPath?: string;
  pciID?: string;
}

export interface IpConfig {
  /** Index into the result's interfaces. */
  interface?: number;
  /** CIDR: the address with the prefix length of its subnet. */
  address: string;
  gateway?: string;
}

export interface Route {
  /** CIDR. */
  dst: string;
  gw?: string;
  /** Bytes. */
  mtu?: number;
  /** Bytes. */
  advmss?: number;
  priority?: number;
  table?: number;
  /** rtnetlink's rtm_scope: 0 global, 253 link, 254 host. */
  scope?: number;
}

export interface Dns {
  nameservers?: string[];
  domain?: string;
  search?: string[];
  options?: string[];
}

/**
 * A result in memory, whatever version it came in: the shape of 1.1.0 with empty lists instead of absent
 * ones. https://www.cni.dev/docs/spec/#success
 */
export interface Result {
  interfaces: Interface[];
  ips: IpConfig[];
  routes: Route[];
  dns: Dns;
}

export const emptyResult = (): Result => ({ interfaces: [], ips: [], routes: [], dns: {} });

/**
 * Reads a result of any version. `configVersion` is what a result without `cniVersion` is taken for; `name` is
 * what messages call it. Throws CniError 6 naming the key and the value that is wrong, 1 for an unknown version.
 */
export function decodeResult(json: unknown, configVersion: string, name = "result"): Result {
  if (json === null || json === undefined) return emptyResult();
  const node = new Node(json, name);
  const version = node.string("cniVersion") || configVersion || implicitVersion;
  if (!isSpecVersion(version))
    throw new CniError(ErrorCode.IncompatibleCniVersion, `unsupported CNI result version "${version}"`);
  return atLeast(version, "0.3.0") ? decodeCurrent(node) : decodeLegacy(node);
}

/**
 * Reads the `prevResult` of a config of the given version. Its own `cniVersion` may differ as long as both
 * versions share one shape; otherwise throws CniError 6 as the Go library words it.
 */
export function decodePrevResult(json: unknown, configVersion: string): Result {
  const version = new Node(json, "prevResult").string("cniVersion");
  const config = configVersion || implicitVersion;
  const family = shapeFamilies.find((f) => (f as readonly string[]).includes(config)) ?? [];
  if (version && !(family as readonly string[]).includes(version))
    throw new CniError(
      ErrorCode.DecodingFailure,
      `could not parse prevResult: result type supports [${family.join(" ")}] but unmarshalled CNIVersion is "${version}"`,
    );
  return decodeResult(json, config, "prevResult");
}

/** The result as an object in the shape and key order that the Go library prints for this version. */
export function encodeResult(result: Result, version: string): Record<string, unknown> {
  const target = version || implicitVersion;
  if (!isSpecVersion(target))
    throw new CniError(
      ErrorCode.IncompatibleCniVersion,
      `no converter for CNI result version 1.1.0 to ${target}`,
    );
  if (atLeast(target, "1.0.0")) return encodeCurrent(result, target);
  return atLeast(target, "0.3.0") ? encode03(result, target) : encodeLegacy(result, target);
}

/** What a plugin prints: four spaces of indent and no newline at the end, as the Go plugins do. */
export function resultText(result: Result, version: string): string {
  return JSON.stringify(encodeResult(result, version), null, 4);
}

/** Whether the text is an IPv6 CIDR. */
export const isIpv6Cidr = (cidr: string): boolean => parseCidr(cidr)?.ip.family === 6;

function decodeCurrent(node: Node): Result {
  return {
    interfaces: node.list("interfaces", (n) =>
      defined({
        name: n.string("name") ?? "",
        mac: n.string("mac") || undefined,
        mtu: n.number("mtu") || undefined,
        sandbox: n.string("sandbox") || undefined,
        socketPath: n.string("socketPath") || undefined,
        pciID: n.string("pciID") || undefined,
      }),
    ),
    ips: node.list("ips", (n) =>
      defined({
        interface: n.number("interface"),
        address: n.cidr("address"),
        gateway: n.ip("gateway"),
      }),
    ),
    routes: node.list("routes", decodeRoute),
    dns: decodeDns(node.child("dns")),
  };
}

function decodeLegacy(node: Node): Result {
  const result: Result = { ...emptyResult(), dns: decodeDns(node.child("dns")) };
  for (const key of ["ip4", "ip6"]) {
    const family = node.child(key);
    if (family === undefined) continue;
    result.ips.push(defined({ address: family.cidr("ip"), gateway: family.ip("gateway") }));
    result.routes.push(...family.list("routes", decodeRoute));
  }
  return result;
}

function decodeRoute(n: Node): Route {
  return defined({
    dst: n.cidr("dst"),
    gw: n.ip("gw"),
    mtu: n.number("mtu") || undefined,
    advmss: n.number("advmss") || undefined,
    priority: n.number("priority") || undefined,
    table: n.number("table"),
    scope: n.number("scope"),
  });
}

function decodeDns(node: Node | undefined): Dns {
  if (node === undefined) return {};
  const some = (list: string[]) => (list.length > 0 ? list : undefined);
  return defined({
    nameservers: some(node.strings("nameservers")),
    domain: node.string("domain") || undefined,
    search: some(node.strings("search")),
    options: some(node.strings("options")),
  });
}

/*
 * Printing leaves undefined properties out, so what is absent or empty is undefined below, and the order of the
 * properties is the order in the text.
 */

/** 1.x: keys in alphabetical order on every level, empty lists and an empty dns left out. */
function encodeCurrent(result: Result, cniVersion: SpecVersion): Record<string, unknown> {
  const { domain, nameservers, options, search } = result.dns;
  const hasDns = Object.keys(result.dns).length > 0;
  return {
    cniVersion,
    dns: hasDns ? { domain, nameservers, options, search } : undefined,
    interfaces: nonEmpty(
      result.interfaces.map(({ mac, mtu, name, pciID, sandbox, socketPath }) => ({
        mac,
        mtu,
        name,
        pciID,
        sandbox,
        socketPath,
      })),
    ),
    ips: nonEmpty(
      result.ips.map((ip) => ({ address: ip.address, gateway: ip.gateway, interface: ip.interface })),
    ),
    routes: nonEmpty(
      result.routes.map(({ advmss, dst, gw, mtu, priority, scope, table }) => ({
        advmss,
        dst,
        gw,
        mtu,
        priority,
        scope,
        table,
      })),
    ),
  };
}

/** 0.3.x and 0.4.0: addresses carry their version, interfaces only name, mac and sandbox, dns is always there. */
function encode03(result: Result, cniVersion: SpecVersion): Record<string, unknown> {
  return {
    cniVersion,
    interfaces: nonEmpty(result.interfaces.map(({ name, mac, sandbox }) => ({ name, mac, sandbox }))),
    ips: nonEmpty(
      result.ips.map((ip) => ({
        version: isIpv6Cidr(ip.address) ? "6" : "4",
        interface: ip.interface,
        address: ip.address,
        gateway: ip.gateway,
      })),
    ),
    routes: nonEmpty(
      result.routes.map(({ dst, gw, mtu, advmss, priority, table, scope }) => ({
        dst,
        gw,
        mtu,
        advmss,
        priority,
        table,
        scope,
      })),
    ),
    dns: encodeDns(result.dns),
  };
}

/** 0.1.0 and 0.2.0 hold one address a family, each with its own routes. */
function encodeLegacy(result: Result, cniVersion: SpecVersion): Record<string, unknown> {
  const ofFamily = (six: boolean) => {
    const ip = result.ips.find((i) => isIpv6Cidr(i.address) === six);
    if (ip === undefined) return undefined;
    const routes = result.routes.filter((r) => isIpv6Cidr(r.dst) === six);
    return {
      ip: ip.address,
      gateway: ip.gateway,
      routes: nonEmpty(routes.map(({ dst, gw }) => ({ dst, gw }))),
    };
  };
  const ip4 = ofFamily(false);
  const ip6 = ofFamily(true);
  if (ip4 === undefined && ip6 === undefined)
    throw new CniError(ErrorCode.Internal, "cannot convert: no valid IP addresses", {
      details: `a ${cniVersion} result needs an address`,
    });
  return { cniVersion, ip4, ip6, dns: encodeDns(result.dns) };
}

function encodeDns({ nameservers, domain, search, options }: Dns): Record<string, unknown> {
  return { nameservers, domain, search, options };
}

const nonEmpty = <T>(list: T[]): T[] | undefined => (list.length > 0 ? list : undefined);

/** `T` with its undefined properties gone, so that optional properties are absent rather than undefined. */
type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

function defined<T extends object>(object: T): Defined<T> {
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(object)) if (value !== undefined) out[key] = value;
  return out as Defined<T>;
}

/** A JSON object with its path, read key by key: names match in any case, null is absent, types are checked. */
class Node {
  readonly #object: Record<string, unknown>;
  readonly #path: string;

  constructor(json: unknown, path: string) {
    if (typeof json !== "object" || json === null || Array.isArray(json))
      throw wrong(path, json, "an object");
    this.#object = json as Record<string, unknown>;
    this.#path = path;
  }

  #value(key: string): unknown {
    if (Object.hasOwn(this.#object, key)) return this.#object[key] ?? undefined;
    const folded = key.toLowerCase();
    const name = Object.keys(this.#object).findLast((k) => k.toLowerCase() === folded);
    return name === undefined ? undefined : (this.#object[name] ?? undefined);
  }

  child(key: string): Node | undefined {
    const value = this.#value(key);
    return value === undefined ? undefined : new Node(value, `${this.#path}.${key}`);
  }

  string(key: string): string | undefined {
    const value = this.#value(key);
    if (value !== undefined && typeof value !== "string")
      throw wrong(`${this.#path}.${key}`, value, "a string");
    return value;
  }

  number(key: string): number | undefined {
    const value = this.#value(key);
    if (value !== undefined && !Number.isSafeInteger(value))
      throw wrong(`${this.#path}.${key}`, value, "a whole number");
    return value as number | undefined;
  }

  list<T>(key: string, decode: (node: Node) => T): T[] {
    const value = this.#value(key) ?? [];
    if (!Array.isArray(value)) throw wrong(`${this.#path}.${key}`, value, "a list");
    return value.map((item, i) => decode(new Node(item, `${this.#path}.${key}[${i}]`)));
  }

  strings(key: string): string[] {
    const value = this.#value(key) ?? [];
    if (!Array.isArray(value) || value.some((item) => typeof item !== "string"))
      throw wrong(`${this.#path}.${key}`, value, "a list of strings");
    return value;
  }

  /** A required address with prefix length, in canonical text. */
  cidr(key: string): string {
    const text = this.string(key) ?? "";
    const cidr: Cidr | undefined = parseCidr(text);
    if (cidr === undefined) throw wrong(`${this.#path}.${key}`, text, "a CIDR address");
    return cidrText(cidr);
  }

  /** An address; "" counts as absent. */
  ip(key: string): string | undefined {
    const text = this.string(key);
    if (!text) return undefined;
    if (parseIp(text) === undefined) throw wrong(`${this.#path}.${key}`, text, "an IP address");
    return text;
  }
}

function wrong(path: string, value: unknown, expected: string): CniError {
  return new CniError(ErrorCode.DecodingFailure, `${path}: ${shown(value)} is not ${expected}`);
}
