import { optionOf, type Rule, ruleKey, splitLine } from "./rule.ts";

/**
 * A table as iptables-save shows it: its chains in order, each with its rules in order. A table of a thousand containers
 * has thousands of rules, of which a call looks at a few: a line is taken apart when it is asked for.
 */
export class Table {
  readonly #lines = new Map<string, string[]>();
  readonly #rules = new Map<string, Rule[]>();
  #byTarget: Map<string, { chain: string; line: string }[]> | undefined;

  /** Takes the output of `iptables-save -t TABLE`. */
  constructor(text: string) {
    for (const line of text.split("\n")) {
      if (line.startsWith(":")) this.#lines.set(line.slice(1, line.indexOf(" ")), []);
      else if (line.startsWith("-A ")) this.#lines.get(line.slice(3, line.indexOf(" ", 3)))?.push(line);
    }
  }

  get chains(): string[] {
    return [...this.#lines.keys()];
  }

  has(chain: string): boolean {
    return this.#lines.has(chain);
  }

  /** A chain's rules; none when there is no such chain. */
  rules(chain: string): readonly Rule[] {
    let rules = this.#rules.get(chain);
    if (rules === undefined) {
      rules = (this.#lines.get(chain) ?? []).map(ruleOf);
      this.#rules.set(chain, rules);
    }
    return rules;
  }

  /** The chains with a line in them that has this text, as iptables-save writes it. */
  chainsWith(text: string): string[] {
    const found: string[] = [];
    for (const [chain, lines] of this.#lines)
      if (lines.some((line) => line.includes(text))) found.push(chain);
    return found;
  }

  /** Whether a rule is in its chain, however it is written. */
  hasRule(chain: string, rule: Rule): boolean {
    const key = ruleKey(rule);
    const target = optionOf(rule, "-j") ?? "";
    return (this.#lines.get(chain) ?? []).some(
      (line) => line.includes(target) && ruleKey(ruleOf(line)) === key,
    );
  }

  /** A chain's rules whose lines have this text, as iptables-save writes it: the few out of thousands. */
  rulesWith(chain: string, text: string): Rule[] {
    return (this.#lines.get(chain) ?? []).filter((line) => line.includes(text)).map(ruleOf);
  }

  /** Every rule of every chain that jumps or goes to one. */
  references(target: string): { chain: string; rule: Rule }[] {
    this.#byTarget ??= this.#indexed();
    return (this.#byTarget.get(target) ?? []).map(({ chain, line }) => ({ chain, rule: ruleOf(line) }));
  }

  #indexed(): Map<string, { chain: string; line: string }[]> {
    const found = new Map<string, { chain: string; line: string }[]>();
    for (const [chain, lines] of this.#lines)
      for (const line of lines) {
        const target = targetOf(line);
        const others = found.get(target);
        if (others === undefined) found.set(target, [{ chain, line }]);
        else others.push({ chain, line });
      }
    return found;
  }
}

const ruleOf = (line: string): Rule => splitLine(line).slice(2);

/** Where a line of iptables-save jumps or goes to. Options of the target may follow it, matches don't. */
function targetOf(line: string): string {
  const at = Math.max(line.lastIndexOf(" -j "), line.lastIndexOf(" -g "));
  // Something like it may stand in a text: then the line is taken apart.
  if (line.indexOf('"', at) >= 0) return optionOf(ruleOf(line), "-j") ?? optionOf(ruleOf(line), "-g") ?? "";
  const end = line.indexOf(" ", at + 4);
  return at < 0 ? "" : line.slice(at + 4, end < 0 ? undefined : end);
}
