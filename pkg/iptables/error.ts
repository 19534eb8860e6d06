import { CniError, ErrorCode } from "@tscni/types";

/**
 * - `missing`: there is no such program
 * - `unusable`: it can't do anything here: no right to, no module in the kernel, or a table that only nft can read
 * - `locked`: another program held the lock of iptables all the time that we waited
 * - `failed`: anything else, such as a rule or chain that is not there
 */
export type IptablesProblem = "missing" | "unusable" | "locked" | "failed";

/** iptables refused a transaction, of which nothing was done. */
export class IptablesError extends CniError {
  readonly problem: IptablesProblem;

  constructor(problem: IptablesProblem, msg: string, details = "") {
    super(ErrorCode.Internal, msg, { details });
    this.problem = problem;
  }

  /** Whether this machine can't do iptables at all, whatever is asked for. */
  get unusable(): boolean {
    return this.problem === "missing" || this.problem === "unusable";
  }
}

/** What the programs say, in both variants, when it is not about the rules. */
const unusableTexts: readonly string[] = [
  "can't initialize ip",
  "unable to initialize table",
  "is incompatible, use 'nft' tool",
  "Permission denied",
  "Operation not permitted",
  "you must be root",
  "Could not fetch rule set generation id",
  "Failed to initialize nft",
  "Fatal: can't open lock file",
  "Table does not exist",
];

export function iptablesErrorOf(program: string, stderr: string): IptablesError {
  const line = stderr.split("\n").find((each) => each.trim() !== "") ?? "no message";
  const unusable = unusableTexts.some((text) => stderr.includes(text));
  const hint = unusable
    ? `; it needs CAP_NET_ADMIN and the kernel's nf_tables or ${program.startsWith("ip6") ? "ip6" : "ip"}_tables`
    : "";
  return new IptablesError(
    unusable ? "unusable" : "failed",
    `${program}: ${line.trim().replace(/^ip6?tables\S* v\S+ \([^)]*\): /, "")}${hint}`,
    stderr.trim().slice(0, 2000),
  );
}

export const iptablesMissing = (program: string): IptablesError =>
  new IptablesError("missing", `${program} is missing: install the package iptables`);
