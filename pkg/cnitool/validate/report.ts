import { readFileSync } from "node:fs";
import { messageOf } from "@tscni/types";
import { type Document, parseDocument, SyntaxProblem } from "../document.ts";
import type { Finding } from "../io.ts";

/** Something wrong in a config: where, and what was expected. */
export interface Problem extends Finding {
  file: string;
  /** Absent when there is no place in the file to point at. */
  line?: number;
  column?: number;
}

/** One config file as it was read, and what was found in it so far. */
export class ConfFile {
  readonly file: string;
  readonly problems: Problem[] = [];
  readonly text: string = "";
  readonly #told = new Set<string>();
  /** Undefined when the file is not JSON or cannot be read; that is its first problem then. */
  readonly document: Document | undefined;

  constructor(file: string) {
    this.file = file;
    try {
      this.text = readFileSync(file, "utf8");
      this.document = parseDocument(this.text);
    } catch (thrown) {
      const place = thrown instanceof SyntaxProblem ? thrown.place : {};
      const what = thrown instanceof SyntaxProblem ? "not JSON" : "cannot be read";
      this.problems.push({
        file,
        path: "",
        level: "error",
        message: `${what}: ${messageOf(thrown)}`,
        ...place,
      });
    }
    for (const { path, place } of this.document?.repeated ?? [])
      this.problems.push({
        file,
        path,
        level: "warning",
        message: "stands here again; the last one counts",
        ...place,
      });
  }

  /** Adds findings, once each; their paths count from `base`. */
  add(findings: readonly Finding[], base = ""): void {
    for (const { path, message, level } of findings) {
      const full = join(base, path);
      const told = JSON.stringify([full, message]);
      if (this.#told.has(told)) continue;
      this.#told.add(told);
      this.problems.push({ file: this.file, path: full, message, level, ...this.document?.placeOf(full) });
    }
  }
}

const join = (base: string, path: string): string =>
  base === "" || path === "" ? base + path : path.startsWith("[") ? base + path : `${base}.${path}`;

export const error = (path: string, message: string): Finding => ({ path, message, level: "error" });
export const warning = (path: string, message: string): Finding => ({ path, message, level: "warning" });

/** A value in a message: as JSON, cut when long. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
