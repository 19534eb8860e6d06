import { startTool } from "@tscni/sys";
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
