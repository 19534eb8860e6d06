import { cidrText, networkOf, parseCidr } from "@tscni/addr";
import { optionOf, type Rule, ruleKey } from "@tscni/iptables";
import { sha512 } from "@tscni/sys";
import { defaultMarkBit, type PortMapping, type PortmapConf } from "./conf.ts";
import { addressOf, type Target } from "./mapping.ts";
import type { Entry } from "./publication.ts";

/*
 * Chains, rules and comments of the table nat exactly as the Go plugin has them, so that either removes what the
 * other made: PREROUTING and OUTPUT lead what is for an address of this host to CNI-HOSTPORT-DNAT, whose rules lead
 * to a chain for each container by protocol and port. There, connections that need it are marked, and all are led to
 * the container.
 */

export const hostportChain = "CNI-HOSTPORT-DNAT";
export const setMarkChain = "CNI-HOSTPORT-SETMARK";
export const masqueradeChain = "CNI-HOSTPORT-MASQ";
/** Before 0.8 there were such chains, too. */
export const oldSnatChain = "CNI-HOSTPORT-SNAT";

/** How the names of all containers' chains begin. */
export const chainPrefix = "CNI-DN-";

/** The container's chain on a network, one for all of its interfaces. 28 characters, as iptables allows. */
export const chainOf = (network: string, containerId: string): string =>
  chainPrefix + sha512(network + containerId).slice(0, 21);

export const oldSnatChainOf = (network: string, containerId: string): string =>
  `CNI-SN-${sha512(network + containerId).slice(0, 21)}`;

/** A rule that all containers share, and the chain that it is in. */
export interface SharedRule {
  chain: string;
  rule: Rule;
  /** In front of the chain, before the masquerading that other plugins add. */
  first?: true;
}

export function sharedRules({ snat, markMasqBit, externalSetMarkChain }: PortmapConf): SharedRule[] {
  const local = ["-m", "addrtype", "--dst-type", "LOCAL", "-j", hostportChain];
  const rules: SharedRule[] = [
    { chain: "PREROUTING", rule: local },
    { chain: "OUTPUT", rule: local },
  ];
  if (!snat || externalSetMarkChain !== undefined) return rules;
  const bit = `0x${(2 ** (markMasqBit ?? defaultMarkBit)).toString(16)}`;
  const mark = `${bit}/${bit}`;
  const comment = (text: string) => ["-m", "comment", "--comment", text];
  rules.push(
    {
      chain: setMarkChain,
      rule: [...comment("CNI portfwd masquerade mark"), "-j", "MARK", "--set-xmark", mark],
    },
    { chain: masqueradeChain, rule: ["-m", "mark", "--mark", mark, "-j", "MASQUERADE"] },
    {
      chain: "POSTROUTING",
      rule: [...comment("CNI portfwd requiring masquerade"), "-j", masqueradeChain],
      first: true,
    },
  );
  return rules;
}

/** The rules of a container's chain for one target. */
export function targetRules(target: Target, conf: PortmapConf): string[][] {
  const mark = conf.externalSetMarkChain ?? setMarkChain;
  const everywhere = target.family === 4 ? "0.0.0.0/0" : "::/0";
  const subnet = cidrText(networkOf(parseCidr(target.address)!));
  const rules: string[][] = [];
  for (const { protocol, hostIp, hostPort, containerPort } of target.mappings) {
    const base = ["-p", protocol, "--dport", `${hostPort}`, ...(hostIp === undefined ? [] : ["-d", hostIp])];
    if (conf.snat) rules.push([...base, "-s", conf.masqAll ? everywhere : subnet, "-j", mark]);
    if (conf.snat && !conf.masqAll && target.family === 4)
      rules.push([...base, "-s", "127.0.0.1", "-j", mark]);
    rules.push([...base, "-j", "DNAT", "--to-destination", destinationText(target, containerPort)]);
  }
  return rules;
}

const destinationText = (target: Target, port: number): string =>
  target.family === 4 ? `${addressOf(target)}:${port}` : `[${addressOf(target)}]:${port}`;

/** multiport takes no more. */
const portsPerRule = 15;

/** The longest comment of iptables. Of a longer one the reference keeps one character too many for iptables. */
const longestComment = 255;

/**
 * The rules that lead to the container's chain: for each protocol the ports, 15 in a rule. As in the reference these
 * are all ports that the runtime passed, whatever family their hostIP is of: others go through the chain and return.
 * Where a protocol has ports of one address beside ports of all, the former get a rule of their own in front.
 */
export function entriesOf(
  { network, containerId }: { network: string; containerId: string },
  ports: readonly PortMapping[],
  target: Target,
  conditions: readonly string[],
): Entry[] {
  const text = `dnat name: "${network}" id: "${containerId}"`;
  const comment = text.length <= longestComment ? text : `${text.slice(0, longestComment - 3)}...`;
  const chain = chainOf(network, containerId);
  const ruleOf = (protocol: string, list: readonly number[]): string[] => [
    ...["-m", "comment", "--comment", comment, "-m", "multiport", "-p", protocol],
    ...["--destination-ports", list.join(","), ...conditions, "-j", chain],
  ];
  const entries: Entry[] = [];
  for (const [protocol, all] of portsByProtocol(ports)) {
    const own = target.mappings.filter((mapping) => mapping.protocol === protocol);
    if (own.length === 0) continue;
    const exact = own.filter(({ hostIp }) => hostIp !== undefined);
    const mixed = exact.length > 0 && exact.length < own.length;
    if (mixed)
      for (const list of chunks(exact.map(({ hostPort }) => hostPort)))
        entries.push({ rule: ruleOf(protocol, list), leading: true, own: true });
    for (const list of chunks(all))
      entries.push({
        rule: ruleOf(protocol, list),
        ...(exact.length === own.length ? { leading: true } : {}),
      });
  }
  return entries;
}

function portsByProtocol(ports: readonly PortMapping[]): [string, number[]][] {
  const found = new Map<string, number[]>();
  for (const { protocol, hostPort } of ports) {
    const name = protocol.toLowerCase() || "tcp";
    found.set(name, [...(found.get(name) ?? []), hostPort]);
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1));
}

function chunks(list: readonly number[]): number[][] {
  const found: number[][] = [];
  for (let i = 0; i < list.length; i += portsPerRule) found.push(list.slice(i, i + portsPerRule));
  return found;
}

/** What a container's chain does for one port: mark what needs it, then lead to an address. */
export interface Group {
  rules: Rule[];
  /** Where it leads, in canonical text. */
  address: string;
  protocol: string;
  hostPort: string;
  /** Without a prefix; undefined for all addresses. */
  hostIp: string | undefined;
}

/** A container's chain, port by port. Rules behind the last that leads anywhere are of no use and left out. */
export function groupsOf(rules: readonly Rule[]): Group[] {
  const groups: Group[] = [];
  let pending: Rule[] = [];
  for (const rule of rules) {
    pending.push(rule);
    if (optionOf(rule, "-j") !== "DNAT") continue;
    groups.push({
      rules: pending,
      address: hostOf(optionOf(rule, "--to-destination") ?? ""),
      protocol: optionOf(rule, "-p") ?? "",
      hostPort: optionOf(rule, "--dport") ?? "",
      hostIp: optionOf(rule, "-d")?.split("/")[0],
    });
    pending = [];
  }
  return groups;
}

/** `10.0.0.2:80` and `[fd00::2]:80` without the port. */
function hostOf(destination: string): string {
  if (destination.startsWith("[")) return destination.slice(1, destination.indexOf("]"));
  const colon = destination.indexOf(":");
  return colon < 0 ? destination : destination.slice(0, colon);
}

/** The network and container that a rule's comment names, as far as the comment holds them. */
export function ownerInComment(rule: Rule): { network: string; containerId: string } | undefined {
  const comment = optionOf(rule, "--comment") ?? "";
  const [before, network, between, containerId] = comment.split('"');
  if (before !== "dnat name: " || between !== " id: " || !network || !containerId) return undefined;
  return { network, containerId };
}

/** Whether two lists of rules are the same, in the same order. */
export const sameRules = (a: readonly Rule[], b: readonly Rule[]): boolean =>
  a.length === b.length && a.every((rule, i) => ruleKey(rule) === ruleKey(b[i]!));
