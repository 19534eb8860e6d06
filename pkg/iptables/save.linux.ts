import { hasNftChain, type Netlink } from "@tscni/netlink";
import { readTextFileIfPresent, startTool } from "@tscni/sys";
import { iptablesMissing } from "./error.ts";
import { verifyExit } from "./restore.linux.ts";
import type { Family } from "./rule.ts";
import { Table } from "./table.ts";

const timeoutMs = 90_000;

/** Reads a table, once, with everything in it. An empty one when the kernel has none yet. Throws IptablesError. */
export function readTable(family: Family, table: string): Table {
  const program = family === 4 ? "iptables-save" : "ip6tables-save";
  const tool = startTool(program, ["-t", table], "", timeoutMs);
  if ("missing" in tool) throw iptablesMissing(tool.missing);
  const exit = tool.wait();
  verifyExit(program, exit);
  return new Table(exit.stdout);
}

/**
 * Whether a table may have a chain, without a process: by a look at nftables, where iptables-nft keeps it. Into the
 * tables of iptables-legacy one can't look so: where the table is there, the chain may be.
 */
export function mayHaveChain(netfilter: Netlink, family: Family, table: string, chain: string): boolean {
  const prefix = family === 4 ? "ip" : "ip6";
  if (hasNftChain(netfilter, prefix, table, chain)) return true;
  const legacy = readTextFileIfPresent(`/proc/thread-self/net/${prefix}_tables_names`);
  return legacy?.split("\n").includes(table) ?? false;
}
