import type { Rule } from "@tscni/iptables";
import { type Policy, withPrefix } from "./protection.ts";

/* The reference's chains and rules of table filter, to the letter: either plugin removes and checks the other's. */

export const forwardChain = "CNI-FORWARD";
export const stage1 = "CNI-ISOLATION-STAGE-1";
export const stage2 = "CNI-ISOLATION-STAGE-2";

const comment = (text: string): Rule => ["-m", "comment", "--comment", text];

/** Of FORWARD, the first or behind the one into the isolation chains. */
export const jumpToForward: Rule = [...comment("CNI firewall plugin rules"), "-j", forwardChain];

/** Of CNI-FORWARD, the first: what administrators say goes first. */
export const jumpToAdmin = (adminChain: string): Rule => [
  ...comment("CNI firewall plugin admin overrides"),
  "-j",
  adminChain,
];

/** Of CNI-FORWARD: answers reach the container, and it may send what it likes. */
export const addressRules = (address: string): Rule[] => [
  ["-d", withPrefix(address), "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "ACCEPT"],
  ["-s", withPrefix(address), "-j", "ACCEPT"],
];

const shared = comment("CNI firewall plugin rules (ingressPolicy: same-bridge|isolated)");
const ofPolicy = (name: Policy["name"]): Rule =>
  comment(`CNI firewall plugin rules (ingressPolicy: ${name})`);

/** Of FORWARD, in front of everything of ours, since what CNI-FORWARD accepts is accepted. */
export const jumpToStage1: Rule = ["-j", stage1, ...shared];

/** The last rule of both stages. */
export const stageReturn: Rule = ["-j", "RETURN", ...shared];

/** Of stage 1, in front: what leaves the bridge goes through stage 2; isolated containers don't reach each other. */
export function stage1Rules({ name, bridge }: Policy): Rule[] {
  const leaves = ["-i", bridge, "!", "-o", bridge, "-j", stage2, ...ofPolicy(name)];
  const within = ["-i", bridge, "-o", bridge, "-j", "DROP", ...ofPolicy(name)];
  return name === "isolated" ? [leaves, within] : [leaves];
}

/** Of stage 2, in front: what left another bridge may not come into this one. */
export const stage2Rule = ({ bridge }: Policy): Rule => ["-o", bridge, "-j", "DROP", ...shared];
