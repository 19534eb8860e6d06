import { ipBytes, ipOfBytes, ipText, parseIp } from "@tscni/addr";
import { address, identifier, type NftText, nft, quoted } from "@tscni/nftables";
import { addressOf, type Mapping, type Target } from "./mapping.ts";
import { masqChainOf } from "./nft-layout.ts";
import type { Masquerading, Publication } from "./publication.ts";

/** The maps, by family. */
export const mapsOf = (family: 4 | 6): string[] => [`exact${family}`, `any${family}`, `masq${family}`];

/** An element of one of the maps, as a publication wants it. */
export interface Element {
  map: string;
  /** As nft writes it: `tcp . 8080`. */
  key: string;
  /** Likewise; a chain's name in the masq maps. */
  data: string;
  /** The port that it is; undefined in the masq maps. */
  mapping?: Mapping;
}

/** What a publication is in the maps. */
export const elementsOf = ({ targets, masquerading = "none" }: Publication): Element[] =>
  targets.flatMap((target) => elementsOfTarget(target, masquerading));

function elementsOfTarget(target: Target, masquerading: Masquerading): Element[] {
  const { family, mappings } = target;
  const elements: Element[] = mappings.map((mapping) => ({
    map: `${mapping.hostIp === undefined ? "any" : "exact"}${family}`,
    key: portKey(mapping),
    data: `${addressOf(target)} . ${mapping.containerPort}`,
    mapping,
  }));
  if (masquerading !== "none")
    elements.push({
      map: `masq${family}`,
      key: addressOf(target),
      data: masqChainOf(target, masquerading),
    });
  return elements;
}

/** What tells an element from all others of a table. */
export const idOf = ({ map, key }: Element): string => `${map} ${key}`;

const portKey = ({ protocol, hostIp, hostPort }: Mapping): string =>
  hostIp === undefined ? `${protocol} . ${hostPort}` : `${protocol} . ${hostIp} . ${hostPort}`;

/** Statements that make elements of an owner, one for each map; they fail where one of them is there. */
export const createElements = (table: string, elements: readonly Element[], comment: string): NftText[] =>
  byMap(elements).map(
    ([map, own]) =>
      nft`create element inet ${identifier(table)} ${identifier(map)} { ${own.map(
        ({ key, data }) => nft`${term(key)} comment ${quoted(comment)} : ${dataTerm(map, data)}`,
      )} }`,
  );

const dataTerm = (map: string, data: string): NftText =>
  map.startsWith("masq") ? nft`goto ${identifier(data)}` : term(data);

/** Statements that delete elements; they fail where one of them is not there. */
export const deleteElements = (table: string, elements: readonly Pick<Element, "map" | "key">[]): NftText[] =>
  byMap(elements).map(
    ([map, own]) =>
      nft`delete element inet ${identifier(table)} ${identifier(map)} { ${own.map(({ key }) => term(key))} }`,
  );

function byMap<T extends { map: string }>(elements: readonly T[]): [string, T[]][] {
  const found = new Map<string, T[]>();
  for (const element of elements) {
    const own = found.get(element.map);
    if (own === undefined) found.set(element.map, [element]);
    else own.push(element);
  }
  return [...found];
}

/** IPPROTO_*, linux/in.h */
const protocolNumbers: Readonly<Record<string, number>> = { tcp: 6, udp: 17, sctp: 132 };

const partsOf = (text: string): string[] => text.split(" . ");

/** A key, or data other than a chain, as nft's text, each part looked at. */
function term(text: string): NftText {
  const parts = partsOf(text).map((part) => (part in protocolNumbers ? identifier(part) : address(part)));
  const [first, second, third] = parts;
  if (second === undefined) return nft`${first!}`;
  return third === undefined ? nft`${first!} . ${second}` : nft`${first!} . ${second} . ${third}`;
}

/** A key or data as the kernel has it: parts in network byte order, each filled up to four bytes. */
export function bytesOf(text: string): Uint8Array {
  const bytes: number[] = [];
  for (const part of partsOf(text)) {
    const protocol = protocolNumbers[part];
    const ip = parseIp(part);
    if (protocol !== undefined) bytes.push(protocol, 0, 0, 0);
    else if (ip !== undefined) bytes.push(...ipBytes(ip));
    else bytes.push(Number(part) >> 8, Number(part) & 255, 0, 0);
  }
  return new Uint8Array(bytes);
}

/** The text of a key that the kernel has in one of the maps. */
export function keyText(map: string, bytes: Uint8Array): string {
  const ipLength = map.endsWith("4") ? 4 : 16;
  if (map.startsWith("masq")) return ipText(ipOfBytes(bytes.subarray(0, ipLength)));
  const number = bytes[0];
  const parts = [
    Object.keys(protocolNumbers).find((name) => protocolNumbers[name] === number) ?? `${number}`,
  ];
  if (map.startsWith("exact")) parts.push(ipText(ipOfBytes(bytes.subarray(4, 4 + ipLength))));
  const at = map.startsWith("exact") ? 4 + ipLength : 4;
  parts.push(`${(bytes[at]! << 8) | bytes[at + 1]!}`);
  return parts.join(" . ");
}
