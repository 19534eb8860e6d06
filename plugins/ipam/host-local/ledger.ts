/** Who an address is reserved for. `ifName` is "" in files of plugins from before interface names were written. */
export interface Owner {
  readonly containerId: string;
  readonly ifName: string;
}

const lineBreak = "\r\n";

/** What a reservation file holds, as the reference writes it. */
export const reservationText = (owner: Owner): string => `${owner.containerId}${lineBreak}${owner.ifName}`;

/** An owner that no container id can equal, for files that nobody could have written so. */
export const unknownOwner: Owner = { containerId: "?", ifName: "" };

/**
 * Reads what a reservation file holds. Undefined when it is blank: the reference creates its file first and
 * writes it then, so one that was killed in between leaves an empty file that is nobody's.
 */
export function ownerOf(text: string): Owner | undefined {
  const trimmed = text.replaceAll("\0", " ").trim();
  if (trimmed === "") return undefined;
  const [containerId = "", ifName = "", ...more] = trimmed.split(lineBreak);
  return more.length > 0 || /\s/.test(containerId + ifName) ? unknownOwner : { containerId, ifName };
}

/** Which address is whose, as lines that are searched as text: nothing is parsed to answer one question. */
export class Ledger {
  /** "\n", then a line `ip TAB container id TAB interface name` for each reservation. */
  #lines: string;
  #taken: Set<string> | undefined;
  #questions = 0;

  constructor(lines = "\n") {
    this.#lines = lines;
  }

  get text(): string {
    return this.#lines;
  }

  has(ip: string): boolean {
    // A full pool asks for thousands of addresses in a row: then it pays to take the lines apart.
    if (this.#questions++ < 8) return this.#lines.includes(`\n${ip}\t`);
    this.#taken ??= new Set(this.entries().map((entry) => entry.ip));
    return this.#taken.has(ip);
  }

  add(ip: string, { containerId, ifName }: Owner): void {
    this.#lines += `${ip}\t${containerId}\t${ifName}\n`;
    this.#taken?.add(ip);
  }

  remove(ip: string): void {
    const start = this.#lines.indexOf(`\n${ip}\t`);
    if (start < 0) return;
    this.#lines = this.#lines.slice(0, start) + this.#lines.slice(this.#lines.indexOf("\n", start + 1));
    this.#taken?.delete(ip);
  }

  /** The addresses of exactly this owner. */
  ipsOf({ containerId, ifName }: Owner): string[] {
    const tail = `\t${containerId}\t${ifName}\n`;
    const ips: string[] = [];
    for (let at = this.#lines.indexOf(tail); at >= 0; at = this.#lines.indexOf(tail, at + 1))
      ips.push(this.#lines.slice(this.#lines.lastIndexOf("\n", at) + 1, at));
    return ips;
  }

  entries(): (Owner & { readonly ip: string })[] {
    return this.#lines
      .slice(1, -1)
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => {
        const [ip = "", containerId = "", ifName = ""] = line.split("\t");
        return { ip, containerId, ifName };
      });
  }
}
