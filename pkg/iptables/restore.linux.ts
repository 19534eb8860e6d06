import { type ChildExit, startTool } from "@tscni/sys";
import { IptablesError, iptablesErrorOf, iptablesMissing } from "./error.ts";
import { lockHolder } from "./lock.linux.ts";
import { type Family, quoteArgument, type Rule } from "./rule.ts";

/** How long another program may hold the lock of iptables-legacy, seconds; iptables-nft knows no lock. */
const lockSeconds = 30;
const timeoutMs = 90_000;

/** The lines of one table for iptables-restore, in order. A chain's name is checked, a rule's texts are quoted. */
export class TableChange {
  readonly table: string;
  readonly #lines: string[] = [];

  constructor(table: string) {
    this.table = table;
  }

  /** Makes a chain; the transaction fails when it is there. */
  createChain(chain: string): this {
    return this.#add(`-N ${chainName(chain)}`);
  }

  /** Makes a chain, or empties the one that is there. */
  emptyChain(chain: string): this {
    return this.#add(`:${chainName(chain)} - [0:0]`);
  }

  /** Adds a rule at the end, without a look whether it is there. */
  append(chain: string, rule: Rule): this {
    return this.#add(`-A ${chainName(chain)}${argumentsOf(rule)}`);
  }

  /** Adds a rule at a position, 1 being the first. */
  insert(chain: string, position: number, rule: Rule): this {
    return this.#add(`-I ${chainName(chain)} ${position}${argumentsOf(rule)}`);
  }

  /** Deletes the first rule that is equal; the transaction fails when there is none. */
  delete(chain: string, rule: Rule): this {
    return this.#add(`-D ${chainName(chain)}${argumentsOf(rule)}`);
  }

  /** Empties a chain; the transaction fails when it is not there. */
  flush(chain: string): this {
    return this.#add(`-F ${chainName(chain)}`);
  }

  /** Removes a chain; the transaction fails when it is not there, not empty or jumped to. */
  removeChain(chain: string): this {
    return this.#add(`-X ${chainName(chain)}`);
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }

  toString(): string {
    // A chain is declared before any rule is looked at.
    const declarations = this.#lines.filter((line) => line.startsWith(":"));
    const rest = this.#lines.filter((line) => !line.startsWith(":"));
    return [`*${this.table}`, ...declarations, ...rest, "COMMIT", ""].join("\n");
  }

  #add(line: string): this {
    this.#lines.push(line);
    return this;
  }
}

const argumentsOf = (rule: Rule): string => rule.map((text) => ` ${quoteArgument(text)}`).join("");

/** A chain's name: at most 28 characters, without white space and not beginning as an option does. */
function chainName(chain: string): string {
  const wrong =
    chain === "" || chain.length > 28 || "-!:*#".includes(chain[0]!) || quoteArgument(chain) !== chain;
  if (wrong) throw new TypeError(`${JSON.stringify(chain)} is not a chain's name`);
  return chain;
}

/** A transaction that iptables-restore is working on. */
export interface IptablesRun {
  /** Waits for its end. Throws IptablesError; then nothing was done (to the table that failed, and those after it). */
  wait(): void;
  [Symbol.dispose](): void;
}

const prefixOf = (family: Family): string => (family === 4 ? "iptables" : "ip6tables");

/**
 * Starts one transaction a table; whatever the tables hold besides stays. iptables-restore keeps `lock`, a descriptor,
 * open until it ends, also when we are killed before. Throws IptablesError without the program.
 */
export function startIptables(family: Family, changes: readonly TableChange[], lock?: number): IptablesRun {
  const program = `${prefixOf(family)}-restore`;
  const input = changes.filter((change) => !change.isEmpty).join("");
  const tool = startTool(program, ["--noflush", "--wait", `${lockSeconds}`], input, timeoutMs, lock);
  if ("missing" in tool) throw iptablesMissing(tool.missing);
  return {
    wait: () => {
      verifyExit(program, tool.wait());
    },
    [Symbol.dispose]: () => tool[Symbol.dispose](),
  };
}

/** What xtables.h calls RESOURCE_PROBLEM: the lock. */
const RESOURCE_PROBLEM = 4;

export function verifyExit(program: string, exit: ChildExit): void {
  const { exitCode, signal, stderr, timedOut } = exit;
  if (exitCode === 0) return;
  if (exitCode === RESOURCE_PROBLEM && stderr.includes("lock")) {
    const holder = lockHolder();
    throw new IptablesError(
      "locked",
      `${program}: another program holds the lock of iptables${holder ? `: ${holder}` : ""}`,
      `waited ${lockSeconds} seconds`,
    );
  }
  if (timedOut)
    throw new IptablesError("failed", `${program} did not end within ${timeoutMs / 1000} seconds`);
  if (signal !== undefined) throw new IptablesError("failed", `${program} was ended by signal ${signal}`);
  throw iptablesErrorOf(program, stderr);
}
