import { optionOf, type Rule, ruleKey, splitLine } from "./rule.ts";

/** A table as iptables-save shows it: its chains in order, each with its rules in order. */
export class Table {
  readonly #chains = new Map<string, Rule[]>();
  readonly #keys = new Map<string, string[]>();

  /** Parses the output of `iptables-save -t TABLE`. */
  constructor(text: string) {
    for (const line of text.split("\n")) {
      if (line.startsWith(":")) this.#chains.set(line.slice(1, line.indexOf(" ")), []);
      else if (line.startsWith("-A ")) {
        const [, chain, ...rule] = splitLine(line);
        this.#chains.get(chain!)?.push(rule);
      }
    }
  }

  get chains(): string[] {
    return [...this.#chains.keys()];
  }

  has(chain: string): boolean {
    return this.#chains.has(chain);
  }

  /** A chain's rules; none when there is no such chain. */
  rules(chain: string): readonly Rule[] {
    return this.#chains.get(chain) ?? [];
  }

  /** Where in its chain a rule is, 0 being the first; -1 when it is not there. However it is written. */
  indexOf(chain: string, rule: Rule): number {
    let keys = this.#keys.get(chain);
    if (keys === undefined) {
      keys = this.rules(chain).map(ruleKey);
      this.#keys.set(chain, keys);
    }
    return keys.indexOf(ruleKey(rule));
  }

  hasRule(chain: string, rule: Rule): boolean {
    return this.indexOf(chain, rule) >= 0;
  }

  /** Every rule of every chain that jumps or goes to one. */
  references(target: string): { chain: string; rule: Rule }[] {
    const found: { chain: string; rule: Rule }[] = [];
    for (const [chain, rules] of this.#chains)
      for (const rule of rules)
        if (optionOf(rule, "-j") === target || optionOf(rule, "-g") === target) found.push({ chain, rule });
    return found;
  }
}
