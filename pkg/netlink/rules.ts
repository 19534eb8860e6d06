import { type Cidr, cidrText } from "@tscni/addr";
import { AF_INET, AF_INET6, type Family, numberOf } from "./families.ts";
import { NLM_F_CREATE, NLM_F_EXCL } from "./flags.ts";
import type { MessageOf, Requester } from "./message.ts";
import type { Netlink } from "./netlink.ts";
import { ruleFormat } from "./tables/rule.ts";

// linux/fib_rules.h
const FR_ACT_TO_TBL = 1;
const FIB_RULE_INVERT = 2;
const RTPROT_BOOT = 3;

/** A routing policy rule. */
export interface Rule {
  family: Family;
  /** Lower ones come first. When absent, the kernel takes one below the lowest. */
  priority?: number | undefined;
  source?: Cidr | undefined;
  destination?: Cidr | undefined;
  inName?: string | undefined;
  outName?: string | undefined;
  mark?: number | undefined;
  markMask?: number | undefined;
  /** The table to look into; absent for rules with another action, and for l3mdev rules. */
  table?: number | undefined;
  /** FR_ACT_*: 1, look into the table, by default. */
  action?: number | undefined;
  /** Matches what does not match. */
  invert?: boolean | undefined;
  l3mdev?: boolean | undefined;
  /** RTPROT_*: boot (3) by default. */
  protocol?: number | undefined;
  /** Routes with a prefix this long or shorter do not count. */
  suppressPrefix?: number | undefined;
}

/** Adds a rule. Throws NetlinkError EEXIST when there is the same one. */
export function addRule(requests: Requester, rule: Rule): void {
  const header = { ...headerOf(rule), action: rule.action ?? FR_ACT_TO_TBL };
  const attributes = { ...attributesOf(rule), protocol: rule.protocol ?? RTPROT_BOOT };
  requests.request(ruleFormat, "NEW", NLM_F_CREATE | NLM_F_EXCL, header, attributes, labelOf(rule));
}

/** Deletes the first rule that has all that is given here. Throws NetlinkError ENOENT when there is none. */
export function deleteRule(requests: Requester, rule: Rule): void {
  const header = { ...headerOf(rule), action: rule.action ?? 0 };
  requests.request(ruleFormat, "DEL", 0, header, attributesOf(rule), labelOf(rule));
}

function headerOf({ family, source, destination, table = 0, invert }: Rule) {
  return {
    family: numberOf(family),
    sourcePrefix: source?.prefix ?? 0,
    destinationPrefix: destination?.prefix ?? 0,
    table: table < 256 ? table : 0,
    flags: invert ? FIB_RULE_INVERT : 0,
  };
}

function attributesOf(rule: Rule) {
  const { priority, inName, outName, mark, markMask, table, l3mdev, protocol, suppressPrefix } = rule;
  return {
    source: rule.source?.ip,
    destination: rule.destination?.ip,
    table: table !== undefined && table > 255 ? table : undefined,
    priority,
    inName,
    outName,
    mark,
    markMask,
    l3mdev,
    protocol,
    suppressPrefix,
  };
}

const labelOf = ({ priority, source, destination, table }: Rule): string =>
  [
    `priority ${priority ?? "any"}`,
    source && `from ${cidrText(source)}`,
    destination && `to ${cidrText(destination)}`,
    table !== undefined && `table ${table}`,
  ]
    .filter(Boolean)
    .join(" ");

/** All rules, by family and priority. */
export function listRules(netlink: Netlink, filter: { family?: Family } = {}): Rule[] {
  return netlink
    .dump(ruleFormat, { family: numberOf(filter.family) }, {}, "rules")
    .filter(({ header }) => header.family === AF_INET || header.family === AF_INET6)
    .map(ruleOf);
}

function ruleOf({ header, attributes }: MessageOf<typeof ruleFormat>): Rule {
  const { source, destination, table = header.table, suppressPrefix, ...rest } = attributes;
  return {
    family: header.family === AF_INET ? 4 : 6,
    priority: rest.priority ?? 0,
    source: source && { ip: source, prefix: header.sourcePrefix },
    destination: destination && { ip: destination, prefix: header.destinationPrefix },
    inName: rest.inName,
    outName: rest.outName,
    mark: rest.mark,
    markMask: rest.markMask,
    table: table === 0 ? undefined : table,
    action: header.action,
    invert: (header.flags & FIB_RULE_INVERT) !== 0,
    l3mdev: rest.l3mdev,
    protocol: rest.protocol,
    suppressPrefix: suppressPrefix === 0xffffffff ? undefined : suppressPrefix,
  };
}
