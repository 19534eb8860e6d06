import { CniError, ErrorCode } from "@tscni/types";

/**
 * - `missing`: there is no nft
 * - `unusable`: nft can't do anything here: no right to, or no nf_tables in the kernel
 * - `absent`: something that a statement named is not there
 * - `exists`: something to be made is there, and is otherwise
 * - `busy`: something to be deleted is in use
 * - `failed`: anything else
 */
export type NftProblem = "missing" | "unusable" | "absent" | "exists" | "busy" | "failed";

/** nft refused a transaction, of which nothing was done. */
export class NftError extends CniError {
  readonly problem: NftProblem;

  constructor(problem: NftProblem, msg: string, details = "") {
    super(ErrorCode.Internal, msg, { details });
    this.problem = problem;
  }

  /** Whether this machine can't do nftables at all, whatever is asked for. */
  get unusable(): boolean {
    return this.problem === "missing" || this.problem === "unusable";
  }
}

/** What the kernel said, by the text of strerror(3) that nft ends its first message with. */
const texts: readonly [string, NftProblem][] = [
  ["No such file or directory", "absent"],
  ["does not exist", "absent"],
  ["File exists", "exists"],
  ["already exists", "exists"],
  ["Device or resource busy", "busy"],
  ["Operation not permitted", "unusable"],
  ["Protocol not supported", "unusable"],
  ["Unable to initialize Netlink socket", "unusable"],
  ["cache initialization failed", "unusable"],
];

/** The error for what nft wrote on stderr; its first line is the message, since the rest repeats our input. */
export function nftErrorOf(stderr: string): NftError {
  const line = stderr.split("\n").find((each) => each.trim() !== "") ?? "no message";
  const problem = texts.find(([text]) => line.includes(text))?.[1] ?? "failed";
  const hint =
    problem === "unusable" ? "; the kernel needs nf_tables, and the process the right CAP_NET_ADMIN" : "";
  return new NftError(problem, `nft: ${line.trim()}${hint}`, stderr.trim().slice(0, 2000));
}

export const nftMissing = (file: string): NftError =>
  new NftError("missing", `${file} is missing: install the package nftables`);
