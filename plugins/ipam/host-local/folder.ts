import { parseIp } from "@tscni/addr";
import {
  close,
  isErrno,
  link,
  O,
  open,
  read,
  readDir,
  readTextFile,
  rename,
  unlink,
  unlinkIfPresent,
  writeTextFile,
} from "@tscni/sys";

/** Under this name a file is written before it gets its own; only one of us at a time does, by the lock. */
export const temporaryName = ".tscni-new";

export const addressesIn = (names: readonly string[]): string[] =>
  names.filter((name) => parseIp(name) !== undefined);

/** The files of one network, to be touched under its lock only. Throws SysError. */
export class Folder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** In no order. */
  names(): string[] {
    return readDir(this.path);
  }

  read(name: string): string | undefined {
    return readFileIfPresent(`${this.path}/${name}`);
  }

  /** Makes a file appear whole; false when there is one of this name. */
  create(name: string, text: string): boolean {
    const temporary = this.#temporary(text);
    try {
      link(temporary, `${this.path}/${name}`);
      return true;
    } catch (error) {
      if (isErrno(error, "EEXIST")) return false;
      throw error;
    } finally {
      unlinkIfPresent(temporary);
    }
  }

  /** Makes a file appear whole, in place of one that may be there. */
  replace(name: string, text: string): void {
    const temporary = this.#temporary(text);
    try {
      rename(temporary, `${this.path}/${name}`);
    } catch (error) {
      unlinkIfPresent(temporary);
      throw error;
    }
  }

  /**
   * As replace, for texts of a few bytes. Where the old one is not longer it is overwritten: so small a write is
   * not cut in half by a kill, and a rename onto a file costs 0.4 ms on ext4, which then starts to write it out.
   */
  put(name: string, text: string): void {
    const old = this.read(name);
    if (old === undefined || old.length > text.length) this.replace(name, text);
    else this.overwrite(name, text);
  }

  /** Writes over a file, which may stay longer than the text, or be cut off by a kill. */
  overwrite(name: string, text: string, flags = 0): void {
    writeTextFile(`${this.path}/${name}`, text, O.WRONLY | flags, 0o600);
  }

  /** Returns whether there was something to remove. */
  remove(name: string): boolean {
    return unlinkIfPresent(`${this.path}/${name}`);
  }

  /** Throws unless a file can be made here. */
  probe(): void {
    unlink(this.#temporary("probe"));
  }

  #temporary(text: string): string {
    const path = `${this.path}/${temporaryName}`;
    const create = () => writeTextFile(path, text, O.WRONLY | O.CREAT | O.EXCL, 0o600);
    try {
      try {
        create();
      } catch (error) {
        if (!isErrno(error, "EEXIST")) throw error;
        unlink(path); // of one of us that was killed; perhaps a second name of a reservation, so never written to
        create();
      }
    } catch (error) {
      unlinkIfPresent(path);
      throw error;
    }
    return path;
  }
}

const decoder = new TextDecoder();
const buffer = new Uint8Array(4096);

/** A whole file. Thousands of small ones may be read in a row, so there is one buffer for them. */
export function readFileIfPresent(path: string): string | undefined {
  let fd: number;
  try {
    fd = open(path, O.RDONLY);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return undefined;
    throw error;
  }
  try {
    const length = read(fd, buffer);
    if (length < buffer.length) return decoder.decode(buffer.subarray(0, length));
  } finally {
    close(fd);
  }
  return readTextFile(path);
}

/** The folder of a network, its path cleaned as the reference does ("//" and "/../" resolved in the text). */
export function networkDir(dataDir: string, network: string): string {
  const absolute = dataDir.startsWith("/");
  const parts: string[] = [];
  for (const part of `${dataDir}/${network}`.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.length > 0 && parts.at(-1) !== "..") parts.pop();
    else if (!absolute) parts.push(part);
  }
  return (absolute ? "/" : "") + parts.join("/");
}
