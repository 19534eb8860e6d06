import type { Dns } from "@tscni/types";

/** What a resolv.conf(5) says. The last `domain` counts, everything else adds up; other keywords are skipped. */
export function parseResolvConf(text: string): Dns {
  const nameservers: string[] = [];
  const search: string[] = [];
  const options: string[] = [];
  let domain: string | undefined;
  for (const line of text.split("\n")) {
    const [keyword = "", ...values] = line.trim().split(/\s+/);
    if (values.length === 0) continue;
    if (keyword === "nameserver") nameservers.push(values[0]!);
    else if (keyword === "domain") domain = values[0];
    else if (keyword === "search") search.push(...values);
    else if (keyword === "options") options.push(...values);
  }
  return {
    ...(nameservers.length > 0 ? { nameservers } : {}),
    ...(domain === undefined ? {} : { domain }),
    ...(search.length > 0 ? { search } : {}),
    ...(options.length > 0 ? { options } : {}),
  };
}
