import type { Folder } from "./folder.ts";

/*
 * Which addresses were released when, in `.tscni-cooling`: a line `ip TAB milliseconds since 1970` each. The
 * file is written only where `cooldown` is set, and holds no more than what still cools.
 */

const fileName = ".tscni-cooling";

export type Cooling = ReadonlyMap<string, number>;

/**
 * The addresses that cool now. A clock that was set back makes a release look like the future; such an entry
 * counts for no longer than `cooldown` either way, so that no clock keeps an address out of use for good.
 */
export function coolingIn(text: string, cooldownSeconds: number, nowMs: number): Map<string, number> {
  const cooling = new Map<string, number>();
  for (const line of text.split("\n")) {
    const [ip = "", since = ""] = line.split("\t");
    if (ip !== "" && since !== "" && Math.abs(nowMs - Number(since)) < cooldownSeconds * 1000)
      cooling.set(ip, Number(since));
  }
  return cooling;
}

export const coolingText = (cooling: Cooling): string =>
  [...cooling].map(([ip, since]) => `${ip}\t${since}\n`).join("");

export function readCooling(folder: Folder, cooldownSeconds: number): Cooling {
  if (cooldownSeconds === 0) return new Map();
  return coolingIn(folder.read(fileName) ?? "", cooldownSeconds, Date.now());
}

/** Notes that addresses are released now. To be called before they are, so that a kill in between loses none. */
export function startCooling(folder: Folder, ips: readonly string[], cooldownSeconds: number): void {
  if (cooldownSeconds === 0 || ips.length === 0) return;
  const now = Date.now();
  const cooling = coolingIn(folder.read(fileName) ?? "", cooldownSeconds, now);
  for (const ip of ips) cooling.set(ip, now);
  folder.replace(fileName, coolingText(cooling));
}
