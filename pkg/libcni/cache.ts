import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { messageOf } from "@tscni/types";
import { decodeCached, type Entry, encodeCached, isBareResult } from "./cached.ts";
import { isObject, parseJson } from "./json.ts";
import type { Attachment, CacheProblem, JsonObject } from "./model.ts";

export interface CacheKey {
  network: string;
  containerId: string;
  ifName: string;
}

/** What the cache has on one attachment. */
export interface Found {
  /** Where the entry is, or would be; undefined when the key can be no file name. */
  file: string | undefined;
  attachment?: Attachment;
  /** A result without anything around it, as libcni before 0.8 stored it. */
  bareResult?: JsonObject;
  /** Why the file that is there can't be used. */
  problem?: string;
}

/**
 * The attachments that were added, a file each, in the Go library's format and under its names. The names are
 * ambiguous ("a-b" + "c" is "a" + "b-c"), so what a file says inside is what counts, and an attachment whose name
 * is taken by another one gets a longer name, which Go's listing finds too.
 */
export class ResultsCache {
  readonly dir: string;

  constructor(cacheDir: string) {
    this.dir = join(cacheDir, "results");
  }

  find(key: CacheKey): Found {
    const names = fileNames(key);
    if (names === undefined) return { file: undefined };
    const [plain, longer] = names.map((name) => this.#look(join(this.dir, name), key));
    if (longer!.attachment) return longer!;
    return plain!.taken ? { file: longer!.file } : plain!;
  }

  /** Every attachment (of a container), sorted by file name, and the files that are none. Throws when the folder can't be read. */
  list(containerId = ""): { attachments: Attachment[]; problems: CacheProblem[] } {
    const attachments: Attachment[] = [];
    const problems: CacheProblem[] = [];
    for (const name of this.#names()) {
      if (containerId !== "" && !name.includes(`-${containerId}-`)) continue;
      const file = join(this.dir, name);
      try {
        const attachment = decodeCached(parseJson(readFileSync(file, "utf8"), "it is not JSON"), file);
        if (containerId === "" || attachment.containerId === containerId) attachments.push(attachment);
      } catch (error) {
        if (!isMissing(error)) problems.push({ file, message: messageOf(error) });
      }
    }
    return { attachments, problems };
  }

  /**
   * Writes an entry whole or not at all. `durable` also survives the machine losing power: without it the file
   * may be empty then.
   */
  write(file: string | undefined, entry: Entry, durable: boolean): void {
    if (file === undefined)
      throw new Error(
        `cache file path requires network name (${JSON.stringify(entry.network)}), container ID (${JSON.stringify(entry.containerId)}), and interface name (${JSON.stringify(entry.ifName)})`,
      );
    mkdirSync(this.dir, { recursive: true, mode: 0o700 });
    const temp = join(this.dir, `${tempPrefix}${process.pid}-${Math.random().toString(36).slice(2)}`);
    const fd = openSync(temp, "wx", 0o600);
    try {
      try {
        const bytes = Buffer.from(encodeCached(entry));
        for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
        if (durable) fsyncSync(fd);
      } finally {
        closeSync(fd);
      }
      renameSync(temp, file);
    } catch (error) {
      rmSync(temp, { force: true });
      throw error;
    }
  }

  /** An entry that is gone already is fine. */
  remove(file: string | undefined): void {
    try {
      if (file !== undefined) unlinkSync(file);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }

  /** Removes what writers that were killed have left: temporary files of more than an hour. */
  sweep(): void {
    const hour = 3_600_000;
    for (const name of this.#allNames().filter((name) => name.startsWith(tempPrefix))) {
      const file = join(this.dir, name);
      try {
        if (Date.now() - statSync(file).mtimeMs > hour) unlinkSync(file);
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    }
  }

  #look(file: string, key: CacheKey): Found & { file: string; taken?: boolean } {
    let text: string;
    try {
      text = readFileSync(file, "utf8");
    } catch (error) {
      return isMissing(error) ? { file } : { file, problem: messageOf(error) };
    }
    try {
      const json = parseJson(text, "it is not JSON");
      if (isObject(json) && isBareResult(json)) return { file, bareResult: json };
      const attachment = decodeCached(json, file);
      const same =
        attachment.network === key.network &&
        attachment.containerId === key.containerId &&
        attachment.ifName === key.ifName;
      return same ? { file, attachment } : { file, taken: true };
    } catch (error) {
      return { file, problem: messageOf(error) };
    }
  }

  /** The names of the entries, sorted. No network's name has a leading dot. */
  #names(): string[] {
    return this.#allNames()
      .filter((name) => !name.startsWith("."))
      .sort((a, b) => (a < b ? -1 : 1));
  }

  #allNames(): string[] {
    try {
      return readdirSync(this.dir);
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  }
}

const tempPrefix = ".tmp-";

/** The Go library's name, and the one for when that is taken: the lengths tell where the parts end. */
function fileNames({ network, containerId, ifName }: CacheKey): [string, string] | undefined {
  if (network === "" || containerId === "" || ifName === "") return undefined;
  const name = `${network}-${containerId}-${ifName}`;
  if (/[/\\\0]/.test(name) || name.startsWith(".")) return undefined;
  return [name, `${name}~${network.length}.${containerId.length}`];
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | null)?.code === "ENOENT";
}
