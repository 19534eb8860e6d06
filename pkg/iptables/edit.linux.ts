import { IptablesError } from "./error.ts";
import { type IptablesRun, startIptables, TableChange } from "./restore.linux.ts";
import type { Family } from "./rule.ts";
import { readTable } from "./save.linux.ts";
import type { Table } from "./table.ts";

/** Others change a table between our look at it and our change, which then fails: it is tried so many times. */
const attempts = 5;

/** Whether iptables said no to a change, rather than being unable to do anything. */
export const isRefused = (error: unknown): boolean =>
  error instanceof IptablesError && error.problem === "failed";

/** What is to become of a family's table. */
export interface FamilyChange {
  readonly family: Family;
  readonly change: TableChange;
}

/** A family's table as it is, and what is to become of it: nothing yet. */
export interface TableEdit extends FamilyChange {
  readonly table: Table;
}

/**
 * Reads a table of some families, has `edit` fill in the changes and makes these; all of it anew when a change was
 * refused, since somebody else changed the table in between. `edit` may so be called several times; what it returned
 * for the changes that were made comes back. Every table is read before the first is changed: where one can't be,
 * nothing has been done. Throws IptablesError.
 */
export function editTables<T>(
  families: readonly Family[],
  name: string,
  edit: (tables: readonly TableEdit[]) => T,
  lock?: number,
): T {
  for (let attempt = 1; ; attempt++) {
    const tables = families.map((family) => ({
      family,
      table: readTable(family, name),
      change: new TableChange(name),
    }));
    const result = edit(tables);
    try {
      runChanges(tables, lock);
      return result;
    } catch (error) {
      if (attempt === attempts || !isRefused(error)) throw error;
    }
  }
}

/** {@link editTables} of one family. */
export const editTable = <T>(
  family: Family,
  name: string,
  edit: (change: TableChange, table: Table) => T,
  lock?: number,
): T => editTables([family], name, ([only]) => edit(only!.change, only!.table), lock);

/**
 * The transactions of all families at the same time; nothing to do starts nothing. Throws the first failure,
 * IptablesError, when all have ended.
 */
export function runChanges(changes: readonly FamilyChange[], lock?: number): void {
  const failures: unknown[] = [];
  const attempt = <T>(step: () => T): T | undefined => {
    try {
      return step();
    } catch (error) {
      failures.push(error);
      return undefined;
    }
  };
  const runs: (IptablesRun | undefined)[] = [];
  for (const { family, change } of changes)
    if (!change.isEmpty) runs.push(attempt(() => startIptables(family, [change], lock)));
  for (const run of runs) attempt(() => run?.wait());
  if (failures.length > 0) throw failures[0];
}
