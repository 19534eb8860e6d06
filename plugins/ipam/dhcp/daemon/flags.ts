import { defaultSocketPath } from "../conf.ts";

/** What `dhcp daemon` can be told: the reference's flags, and -leasedir. */
export interface DaemonFlags {
  /** A file for the process id; "" for none. */
  pidfile: string;
  /** Put before every path of the host's: where the daemon sees the host's root. */
  hostprefix: string;
  socketpath: string;
  /** Whether servers are to broadcast their answers. */
  broadcast: boolean;
  leasedir: string;
  /** Milliseconds. */
  timeout: number;
  resendmax: number;
  resendtimeout: number;
}

/** A command line that makes no sense; the message is for whoever typed it. */
export class UsageError extends Error {}

const strings: Record<string, string> = {
  pidfile: "",
  hostprefix: "",
  socketpath: defaultSocketPath,
  leasedir: "/var/lib/cni/dhcp",
};
const durations: Record<string, number> = { timeout: 10_000, resendmax: 62_000, resendtimeout: 208_000 };

/** Reads flags as Go does: `-name value`, `-name=value`, with one dash or two. Throws UsageError. */
export function parseDaemonFlags(args: readonly string[]): DaemonFlags {
  const flags: Record<string, string | number | boolean> = { ...strings, ...durations, broadcast: false };
  for (let i = 0; i < args.length; i++) {
    const { name, value } = split(args[i]!);
    if (name === "broadcast") flags[name] = booleanOf(value ?? "true");
    else if (Object.hasOwn(flags, name)) {
      const given = value ?? args[++i];
      if (given === undefined) throw new UsageError(`flag needs an argument: -${name}`);
      if (Object.hasOwn(durations, name)) flags[name] = durationOf(given, name);
      else flags[name] = given === "" ? strings[name]! : given;
    } else throw new UsageError(`flag provided but not defined: -${name}`);
  }
  const all = flags as unknown as DaemonFlags;
  if (all.pidfile !== "" && !all.pidfile.startsWith("/"))
    throw new UsageError(`Error writing pidfile ${JSON.stringify(all.pidfile)}: path not absolute`);
  return all;
}

/** A flag's name, and its value where that is part of the same word. */
export function split(arg: string): { name: string; value?: string } {
  const flag = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(arg);
  if (flag === null) throw new UsageError(`unexpected argument ${JSON.stringify(arg)}`);
  return flag[2] === undefined ? { name: flag[1]! } : { name: flag[1]!, value: flag[2] };
}

function booleanOf(text: string): boolean {
  if (["true", "TRUE", "True", "t", "T", "1"].includes(text)) return true;
  if (["false", "FALSE", "False", "f", "F", "0"].includes(text)) return false;
  throw new UsageError(`invalid boolean value ${JSON.stringify(text)} for -broadcast`);
}

const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const longestMs = 7 * 86_400_000;

/** A duration as Go writes it, such as 1m30s or 1.5h, in milliseconds: more than none, a week at most. */
function durationOf(text: string, name: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ms|s|m|h)/g)];
  const ms = parts.reduce((sum, [, count, unit]) => sum + Number(count) * units[unit!]!, 0);
  if (parts.map(([part]) => part).join("") !== text || ms <= 0 || ms > longestMs)
    throw new UsageError(
      `invalid value ${JSON.stringify(text)} for flag -${name}: not a duration such as 10s or 1m30s`,
    );
  return ms;
}
