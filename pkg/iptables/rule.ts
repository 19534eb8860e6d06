/** The two programs there are: iptables and ip6tables. */
export type Family = 4 | 6;

/** A rule without its chain: arguments as iptables takes them on its command line, one text each. */
export type Rule = readonly string[];

/**
 * Text for iptables-restore. Throws for what it can't hold: a line break, or a NUL, which would end the line or the
 * text, and with them the rule.
 */
export function quoteArgument(text: string): string {
  let plain = text !== "";
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (c < " " || c === "\x7f") throw new TypeError(`${JSON.stringify(text)} has a control character`);
    if (c === '"' || c === "\\") out += "\\";
    if (c === '"' || c === "\\" || c === " " || c === "'" || c === "#") plain = false;
    out += c;
  }
  return plain ? out : `"${out}"`;
}

/** A line of iptables-save or for iptables-restore as arguments. */
export function splitLine(line: string): string[] {
  const found: string[] = [];
  let current: string | undefined;
  let inQuotes = false;
  for (let i = 0; i < line.length; i++) {
    const c = line[i]!;
    if (c === "\\" && inQuotes && i + 1 < line.length) current = (current ?? "") + line[++i];
    else if (c === '"') {
      inQuotes = !inQuotes;
      current ??= "";
    } else if (c === " " && !inQuotes) {
      if (current !== undefined) found.push(current);
      current = undefined;
    } else current = (current ?? "") + c;
  }
  if (current !== undefined) found.push(current);
  return found;
}

/** Options that have a longer or an older name, by the name that iptables-save writes. */
const names: Readonly<Record<string, string>> = {
  "--source": "-s",
  "--src": "-s",
  "--destination": "-d",
  "--dst": "-d",
  "--protocol": "-p",
  "--proto": "-p",
  "--in-interface": "-i",
  "--out-interface": "-o",
  "--jump": "-j",
  "--goto": "-g",
  "--match": "-m",
  "--destination-port": "--dport",
  "--source-port": "--sport",
  "--destination-ports": "--dports",
  "--source-ports": "--sports",
};

/**
 * One text for a rule however it is written: with another order of options, with or without `/32`, with or without the
 * `-m` that an option implies. Equal texts are equal rules, as far as the rules of CNI plugins go.
 */
export function ruleKey(rule: Rule): string {
  const clauses: string[] = [];
  for (let i = 0; i < rule.length; ) {
    let negated = "";
    if (rule[i] === "!") {
      negated = "! ";
      i++;
    }
    const option = names[rule[i] ?? ""] ?? rule[i] ?? "";
    const first = ++i;
    // A comment is one value, whatever it begins with.
    if (option === "--comment") i++;
    else while (i < rule.length && rule[i] !== "!" && !isOption(rule[i]!)) i++;
    const values = rule.slice(first, i);
    if (option === "-m") continue;
    if (option === "-s" || option === "-d") values[0] = withoutHostPrefix(values[0] ?? "");
    if ((option === "-s" || option === "-d") && (values[0] === "0.0.0.0/0" || values[0] === "::/0")) continue;
    clauses.push(negated + [option, ...values].join("\x1f"));
  }
  return clauses.sort().join("\x1e");
}

const isOption = (text: string): boolean => text.startsWith("-") && text.length > 1;

function withoutHostPrefix(text: string): string {
  const host = text.includes(":") ? "/128" : "/32";
  return text.endsWith(host) ? text.slice(0, -host.length) : text;
}

/** The value after an option, such as the chain of `-j`; undefined when the rule has no such option. */
export function optionOf(rule: Rule, option: string): string | undefined {
  for (let i = 0; i < rule.length; i++) {
    if ((names[rule[i]!] ?? rule[i]) === option) return rule[i + 1];
    if (rule[i] === "--comment") i++;
  }
  return undefined;
}
