import { type Ip, parseIp } from "@tscni/addr";
import {
  close,
  isErrno,
  link,
  lockExclusive,
  mkdirAll,
  O,
  open,
  read,
  readDir,
  readTextFile,
  rename,
  SysError,
  setMtime,
  stat,
  unlink,
  unlinkIfPresent,
  writeTextFile,
} from "@tscni/sys";
import { CniError, ErrorCode } from "@tscni/types";
import { Ledger, type Owner, ownerOf, reservationText, unknownOwner } from "./ledger.ts";

/*
 * The reservations of one network, in `<dataDir>/<network>/`:
 *
 *   lock                  flock(2) around everything here
 *   <ip>                  whose the address is: `<container id>\r\n<interface name>`
 *   last_reserved_ip.<n>  what range set n handed out last
 *
 * are the reference's, byte for byte, so that either plugin can take over from the other. Names that start
 * with ".tscni" are ours; the reference walks over them and finds nothing in them.
 */

const indexName = ".tscni-index";
const temporaryName = ".tscni-new";
const indexMagic = "tscni-host-local-1";

/** The reservations of one network while we hold its lock. Throws SysError. */
export class Store {
  readonly dir: string;
  /** The kernel's name for this boot (boot_id); "" when it does not tell. */
  readonly bootId: string;
  readonly #lock: number;
  #ledger: Ledger | undefined;
  /** Whether the index on disk says what the ledger says. */
  #saved = false;
  /** The boot in which reservations of earlier boots were released last. */
  #sweptBoot = "";
  /** Characters of the index file as it was found; undefined before it was looked for. */
  #indexLength: number | undefined;

  private constructor(dir: string, lock: number) {
    this.dir = dir;
    this.#lock = lock;
    this.bootId = readFileIfPresent("/proc/sys/kernel/random/boot_id")?.trim() ?? "";
  }

  /** Waits for the lock. Without `create`, throws ENOENT when the network has no folder. */
  static open(dir: string, create: boolean): Store {
    const lock = openLock(dir, create);
    try {
      lockExclusive(lock);
      return new Store(dir, lock);
    } catch (error) {
      close(lock);
      throw error;
    }
  }

  close(): void {
    close(this.#lock);
  }

  /** Whether this boot still has to release what earlier boots left. */
  get isFirstOfBoot(): boolean {
    this.#readIndex();
    return this.bootId !== "" && this.#sweptBoot !== this.bootId;
  }

  /** Notes that this boot has released what earlier boots left. */
  setSwept(): void {
    this.#sweptBoot = this.bootId;
    this.#saved = false;
  }

  get ledger(): Ledger {
    this.#readIndex();
    this.#ledger ??= this.#scan();
    return this.#ledger;
  }

  /** Forgets what the index said and reads every file. */
  rescan(): void {
    this.#readIndex();
    this.#saved = false;
    this.#ledger = this.#scan();
  }

  /** Lets the next use of the ledger read every file. */
  forget(): void {
    this.#readIndex();
    this.#saved = false;
    this.#ledger = undefined;
  }

  /** Throws SysError unless a reservation could be written here. */
  probe(): void {
    const { mtimeNs } = stat(this.dir);
    const trusted = this.ledger && this.#saved;
    unlink(this.#temporary(""));
    if (trusted) setMtime(this.dir, mtimeNs);
  }

  /** Makes the reservation's file appear, whole; false when the address has an owner. */
  reserve(ip: string, owner: Owner): boolean {
    const path = `${this.dir}/${ip}`;
    const temporary = this.#temporary(reservationText(owner));
    try {
      for (;;) {
        try {
          link(temporary, path);
          break;
        } catch (error) {
          if (!isErrno(error, "EEXIST") || this.ownerOf(ip)) throw error;
          unlink(path); // left empty by a reference plugin that was killed: under the lock nobody is writing it
        }
      }
    } catch (error) {
      if (isErrno(error, "EEXIST")) return false;
      throw error;
    } finally {
      unlinkIfPresent(temporary);
    }
    this.#change((ledger) => ledger.add(ip, owner));
    return true;
  }

  /** Takes an address back; false when it was free. */
  release(ip: string): boolean {
    const present = unlinkIfPresent(`${this.dir}/${ip}`);
    this.#change((ledger) => ledger.remove(ip));
    return present;
  }

  /** Whose an address is by its file: undefined when there is none or it is blank. */
  ownerOf(ip: string): Owner | undefined {
    try {
      const text = readFileIfPresent(`${this.dir}/${ip}`);
      return text === undefined ? undefined : ownerOf(text);
    } catch (error) {
      if (error instanceof SysError) return unknownOwner; // unreadable, or a folder: in use, by whom is not known
      throw error;
    }
  }

  /** The owner's addresses: those of the pair, or those that an old plugin wrote with the id alone. */
  ipsOf(owner: Owner): string[] {
    for (const candidate of [owner, { ...owner, ifName: "" }]) {
      const ips = this.ledger.ipsOf(candidate);
      if (ips.length > 0) return ips;
    }
    return [];
  }

  lastReserved(set: number): Ip | undefined {
    return parseIp(this.read(`last_reserved_ip.${set}`) ?? "");
  }

  /**
   * Overwrites in place where the old text is not longer: a write of a few bytes is not cut in half by a kill,
   * and replacing a file by rename costs 0.4 ms on ext4, which then starts to write it out.
   */
  setLastReserved(set: number, ip: string): void {
    const name = `last_reserved_ip.${set}`;
    const old = this.read(name);
    if (old === undefined || old.length > ip.length) this.replace(name, ip);
    else writeTextFile(`${this.dir}/${name}`, ip);
  }

  /** Makes a file of the folder appear whole, in place of one that may be there. */
  replace(name: string, text: string): void {
    const temporary = this.#temporary(text);
    try {
      rename(temporary, `${this.dir}/${name}`);
    } catch (error) {
      unlinkIfPresent(temporary);
      throw error;
    }
  }

  read(name: string): string | undefined {
    return readFileIfPresent(`${this.dir}/${name}`);
  }

  /**
   * Writes the index, so that the next call need not read every file. It is trusted in this boot as long as the
   * folder's modification time is the one that is set here: one in the past, which no change made by another
   * plugin can give it. Whatever happens on the way there, the time does not match and all files are read
   * again; so it is written in place, and failing to write it costs time and nothing else.
   */
  save(): void {
    if (this.#saved || this.#ledger === undefined) return;
    const mtimeNs = (BigInt(Date.now()) - 10_000n) * 1_000_000n + BigInt(Math.floor(Math.random() * 1e6));
    // An empty line ends it; what may follow is the rest of an older, longer one.
    const text = `${indexMagic} ${mtimeNs} ${this.#sweptBoot}${this.#ledger.text}\n`;
    const shrink = (this.#indexLength ?? 0) > 4 * text.length + 4096 ? O.TRUNC : 0;
    try {
      writeTextFile(`${this.dir}/${indexName}`, text, O.WRONLY | O.CREAT | shrink, 0o600);
      setMtime(this.dir, mtimeNs);
      this.#saved = true;
    } catch (error) {
      if (!(error instanceof SysError)) throw error;
    }
  }

  #change(change: (ledger: Ledger) => void): void {
    this.#saved = false;
    if (this.#ledger) change(this.#ledger);
  }

  #readIndex(): void {
    if (this.#indexLength !== undefined) return;
    const text = this.read(indexName) ?? "";
    this.#indexLength = text.length;
    const start = text.indexOf("\n");
    const [magic, mtimeNs, sweptBoot] = text.slice(0, start).split(" ");
    if (magic !== indexMagic || sweptBoot === undefined) return;
    this.#sweptBoot = sweptBoot;
    const end = text.indexOf("\n\n", start);
    // Before a crash of the machine, file and folder may have been written out in any order.
    if (end < 0 || this.isFirstOfBoot || String(stat(this.dir).mtimeNs) !== mtimeNs) return;
    this.#ledger = new Ledger(text.slice(start, end + 1));
    this.#saved = true;
  }

  #scan(): Ledger {
    const ledger = new Ledger();
    for (const ip of this.addressFiles()) {
      const owner = this.ownerOf(ip);
      if (owner) ledger.add(ip, owner);
    }
    return ledger;
  }

  /** The names of the folder that are addresses. */
  addressFiles(): string[] {
    return readDir(this.dir).filter((name) => parseIp(name) !== undefined);
  }

  /** A new file with this text under our one temporary name: whoever holds the lock is alone with it. */
  #temporary(text: string): string {
    const path = `${this.dir}/${temporaryName}`;
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

function openLock(dir: string, create: boolean): number {
  const path = `${dir}/lock`;
  try {
    return open(path, O.RDONLY | O.CREAT, 0o750);
  } catch (error) {
    if (!create || !isErrno(error, "ENOENT")) throw error;
    mkdirAll(dir);
    return open(path, O.RDONLY | O.CREAT, 0o750);
  }
}

const decoder = new TextDecoder();
const buffer = new Uint8Array(4096);

/** A whole file. Thousands of small ones are read in a row, so there is one buffer for them. */
function readFile(path: string): string {
  const fd = open(path, O.RDONLY);
  try {
    const length = read(fd, buffer);
    if (length < buffer.length) return decoder.decode(buffer.subarray(0, length));
  } finally {
    close(fd);
  }
  return readTextFile(path);
}

function readFileIfPresent(path: string): string | undefined {
  try {
    return readFile(path);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** Runs `work` under the network's lock. File errors come out as CniError 5, naming the folder. */
export function withStore<T>(dir: string, work: (store: Store) => T): T {
  return asIoFailure(dir, () => lockedStore(dir, true, work));
}

/** As withStore, but undefined, with nothing created, when the network has no folder. */
export function withStoreIfPresent<T>(dir: string, work: (store: Store) => T): T | undefined {
  return asIoFailure(dir, () => {
    let store: Store;
    try {
      store = Store.open(dir, false);
    } catch (error) {
      if (isErrno(error, "ENOENT")) return undefined;
      throw error;
    }
    return closing(store, work);
  });
}

const lockedStore = <T>(dir: string, create: boolean, work: (store: Store) => T): T =>
  closing(Store.open(dir, create), work);

function closing<T>(store: Store, work: (store: Store) => T): T {
  try {
    return work(store);
  } finally {
    store.close();
  }
}

function asIoFailure<T>(dir: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof SysError)) throw error;
    throw new CniError(
      ErrorCode.IoFailure,
      `cannot use the data folder ${JSON.stringify(dir)}: ${error.message}`,
      {
        cause: error,
      },
    );
  }
}

/** The folder of a network, its path cleaned as the reference does ("//" and "/../" resolved in the text). */
export function networkDir(dataDir: string, network: string): string {
  const parts: string[] = [];
  for (const part of `${dataDir}/${network}`.split("/")) {
    if (part === "..") {
      if (parts.length > 0 && parts.at(-1) !== "..") parts.pop();
      else if (!dataDir.startsWith("/")) parts.push(part);
    } else if (part !== "" && part !== ".") parts.push(part);
  }
  return (dataDir.startsWith("/") ? "/" : "") + parts.join("/");
}
