import { foldedName } from "./fold.ts";
import type { Schema } from "./schema.ts";

/** A key that no plugin reads, with the one that was probably meant. */
export interface UnknownKey {
  /** Such as `ipam.rangess`. */
  path: string;
  suggestion?: string;
}

/** Keys of a config that its schema does not declare. Loose objects, whose rest is another's, may hold anything. */
export function unknownKeys(schema: Schema, json: unknown): UnknownKey[] {
  const found: UnknownKey[] = [];
  collect(schema, json, "", found);
  return found;
}

function collect(shape: Schema, value: unknown, path: string, found: UnknownKey[]): void {
  if (shape.wrapped) {
    collect(shape.wrapped, value, path, found);
    return;
  }
  if (shape.type === "array" && Array.isArray(value)) {
    for (const [i, item] of value.entries()) collect(shape.item!, item, `${path}[${i}]`, found);
    return;
  }
  if (!shape.entries || typeof value !== "object" || value === null) return;
  const known = Object.keys(shape.entries);
  for (const [key, item] of Object.entries(value)) {
    const at = path === "" ? key : `${path}.${key}`;
    const name = foldedName(shape, key);
    if (name !== undefined) collect(shape.entries[name]!, item, at, found);
    else if (!shape.loose) {
      const suggestion = nearest(key, known);
      found.push(suggestion === undefined ? { path: at } : { path: at, suggestion });
    }
  }
}

/** The candidate that differs from `word` by the fewest typing slips, if by no more than a third of its letters. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = slips(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Levenshtein's distance with swapped neighbours counted as one slip. */
function slips(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = rows[i - 1]![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(change, rows[i - 1]![j]! + 1, row[j - 1]! + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, rows[i - 2]![j - 2]! + 1);
      row.push(least);
    }
    rows.push(row);
  }
  return rows[a.length]![b.length]!;
}
