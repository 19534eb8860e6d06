import { condition } from "@tscni/nftables/text";
import { messageOf } from "@tscni/types";
import type { Backend } from "./conf.ts";

/*
 * Conditions are firewall language that the config brings: arguments of iptables, or an expression of nft. What
 * is refused here is what would make more of them than a condition: another command, another target, a comment
 * that cuts the rest of the rule off. Everything that is left is for iptables and nft to judge.
 */

/** Which backend's language a list of conditions is in, told by its first character; undefined when it has none. */
export function backendOfConditions(conditions: readonly string[]): Backend | undefined {
  const [first = ""] = conditions;
  if (first === "") return undefined;
  // No expression of nft begins like this.
  return first.startsWith("-") || first.startsWith("!") ? "iptables" : "nftables";
}

/** What is wrong with a list of conditions, as the end of a sentence that starts with it; undefined if nothing is. */
export function conditionsProblem(conditions: readonly string[]): string | undefined {
  for (const condition of conditions) {
    if (hasControlCharacter(condition)) return "has a control character";
  }
  return backendOfConditions(conditions) === "iptables"
    ? argumentsProblem(conditions)
    : expressionProblem(conditions.join(" "));
}

function hasControlCharacter(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code === 0x2028 || code === 0x2029) return true;
  }
  return false;
}

/** Short options that are matches: protocol, source, destination, interfaces, fragment, module. */
const matchOptions = "psdiofm46";

/** iptables' commands, targets and settings. It takes an option's beginning for the option. */
const otherOptions = [
  ..."append check delete insert replace list list-rules flush zero new-chain delete-chain rename-chain".split(
    " ",
  ),
  ..."policy jump goto table set-counters modprobe wait wait-interval version help verbose numeric".split(
    " ",
  ),
  ..."exact line-numbers noflush counters test".split(" "),
];

function argumentsProblem(conditions: readonly string[]): string | undefined {
  for (const argument of conditions) {
    if (argument === "-" || argument === "--") return `has ${argument} for an argument`;
    const isOther = argument.startsWith("--")
      ? otherOptions.some((option) => option.startsWith(argument.slice(2).split("=")[0]!))
      : argument.startsWith("-") && !matchOptions.includes(argument[1]!);
    if (isOther) return `has ${argument}, which is no condition`;
  }
  return undefined;
}

/** An expression may name sets (`ip saddr { 10.0.0.1, 10.0.0.2 }`) and texts (`iifname "eth0"`). */
function expressionProblem(text: string): string | undefined {
  try {
    condition(text);
    return undefined;
  } catch (error) {
    return `can't stand in a rule: ${messageOf(error)}`;
  }
}
