import { type Ip, parseIp } from "@tscni/addr";
import { close, isErrno, lockExclusive, mkdirAll, O, open, SysError, setMtime, stat } from "@tscni/sys";
import { CniError, ErrorCode } from "@tscni/types";
import { addressesIn, Folder, readFileIfPresent, temporaryName } from "./folder.ts";
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
const indexMagic = "tscni-host-local-1";

/** The reservations of one network while we hold its lock. Throws SysError. */
export class Store {
  readonly folder: Folder;
  /** The kernel's name for this boot (boot_id); "" when it does not tell. */
  readonly #bootId = readFileIfPresent("/proc/sys/kernel/random/boot_id")?.trim() ?? "";
  readonly #lock: number;
  #ledger: Ledger | undefined;
  /** Whether the index on disk says what the ledger says. */
  #saved = false;
  /** The boot in which reservations of earlier boots were released last. */
  #sweptBoot = "";
  /** Whether one of us was killed and has left its temporary file. */
  #leftover = false;
  /** Characters of the index file as it was found; undefined before it was looked for. */
  #indexLength: number | undefined;

  private constructor(folder: Folder, lock: number) {
    this.folder = folder;
    this.#lock = lock;
  }

  /** Waits for the lock. Without `create`, throws ENOENT when the network has no folder. */
  static open(dir: string, create: boolean): Store {
    const lock = openLock(dir, create);
    try {
      lockExclusive(lock);
      return new Store(new Folder(dir), lock);
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
    return this.#bootId !== "" && this.#sweptBoot !== this.#bootId;
  }

  /** Notes that this boot has released what earlier boots left. */
  setSwept(): void {
    this.#sweptBoot = this.#bootId;
    this.#saved = false;
  }

  /** Who has what: from the index where it can be believed, otherwise from every file. */
  get ledger(): Ledger {
    this.#readIndex();
    this.#ledger ??= this.#scan();
    return this.#ledger;
  }

  /** Lets the next use of the ledger read every file, for when the index turns out to be wrong. */
  forget(): void {
    this.#readIndex();
    this.#saved = false;
    this.#ledger = undefined;
  }

  /** Throws SysError unless a reservation could be written here. */
  probe(): void {
    const isBelieved = this.ledger && this.#saved;
    const { mtimeNs } = stat(this.folder.path);
    this.folder.probe();
    if (isBelieved) setMtime(this.folder.path, mtimeNs);
  }

  /** Makes the reservation's file appear, whole; false when the address has an owner. */
  reserve(ip: string, owner: Owner): boolean {
    const { ledger } = this;
    this.#saved = false;
    while (!this.folder.create(ip, reservationText(owner))) {
      if (this.ownerOf(ip)) return false;
      this.folder.remove(ip); // left blank by a reference plugin that was killed: under the lock nobody writes it
    }
    ledger.add(ip, owner);
    return true;
  }

  /** Takes an address back; false when it was free. */
  release(ip: string): boolean {
    const { ledger } = this;
    this.#saved = false;
    const present = this.folder.remove(ip);
    ledger.remove(ip);
    return present;
  }

  /** Whose an address is by its file: undefined when there is none or it is blank. */
  ownerOf(ip: string): Owner | undefined {
    try {
      const text = this.folder.read(ip);
      return text === undefined ? undefined : ownerOf(text);
    } catch (error) {
      if (error instanceof SysError) return unknownOwner; // unreadable, or a folder: in use, by whom is not known
      throw error;
    }
  }

  /** The owner's addresses: those of the pair, or those that an old plugin wrote with the id alone. */
  ipsOf(owner: Owner): string[] {
    const ips = this.#verifiedIpsOf(owner);
    return ips.length > 0 ? ips : this.#verifiedIpsOf({ ...owner, ifName: "" });
  }

  /** Each looked up in its file; when the index is wrong about one, all files are read. */
  #verifiedIpsOf(owner: Owner): string[] {
    const ips = this.ledger.ipsOf(owner);
    for (const ip of ips) {
      const found = this.ownerOf(ip);
      if (found?.containerId === owner.containerId && found.ifName === owner.ifName) continue;
      this.forget();
      return this.ledger.ipsOf(owner);
    }
    return ips;
  }

  lastReserved(set: number): Ip | undefined {
    return parseIp(this.folder.read(`last_reserved_ip.${set}`) ?? "");
  }

  setLastReserved(set: number, ip: string): void {
    this.folder.put(`last_reserved_ip.${set}`, ip);
  }

  /**
   * Writes the index, so that the next call need not read every file. It is believed in this boot as long as the
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
      if (this.#leftover) this.folder.remove(temporaryName);
      this.folder.overwrite(indexName, text, O.CREAT | shrink);
      setMtime(this.folder.path, mtimeNs);
      this.#saved = true;
    } catch (error) {
      if (!(error instanceof SysError)) throw error;
    }
  }

  #readIndex(): void {
    if (this.#indexLength !== undefined) return;
    const text = this.folder.read(indexName) ?? "";
    this.#indexLength = text.length;
    const start = text.indexOf("\n");
    const [magic, mtimeNs, sweptBoot] = text.slice(0, start).split(" ");
    if (magic !== indexMagic || sweptBoot === undefined) return;
    this.#sweptBoot = sweptBoot;
    const end = text.indexOf("\n\n", start);
    // Before a crash of the machine, file and folder may have been written out in any order.
    if (end < 0 || this.isFirstOfBoot || String(stat(this.folder.path).mtimeNs) !== mtimeNs) return;
    this.#ledger = new Ledger(text.slice(start, end + 1));
    this.#saved = true;
  }

  #scan(): Ledger {
    const ledger = new Ledger();
    const names = this.folder.names();
    this.#leftover = names.includes(temporaryName);
    for (const ip of addressesIn(names)) {
      const owner = this.ownerOf(ip);
      if (owner) ledger.add(ip, owner);
    }
    return ledger;
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

/** Runs `work` under the network's lock. File errors come out as CniError 5, naming the folder. */
export function withStore<T>(dir: string, work: (store: Store) => T): T {
  try {
    const store = Store.open(dir, true);
    return closing(store, work);
  } catch (error) {
    throw ioFailure(dir, error);
  }
}

/** As withStore, but undefined, with nothing created, when the network has no folder. */
export function withStoreIfPresent<T>(dir: string, work: (store: Store) => T): T | undefined {
  let store: Store;
  try {
    store = Store.open(dir, false);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return undefined;
    throw ioFailure(dir, error);
  }
  try {
    return closing(store, work);
  } catch (error) {
    throw ioFailure(dir, error);
  }
}

function closing<T>(store: Store, work: (store: Store) => T): T {
  try {
    return work(store);
  } finally {
    store.close();
  }
}

/** A failure of files as CniError 5; anything else as it is. */
export function ioFailure(dir: string, error: unknown): unknown {
  if (!(error instanceof SysError)) return error;
  const message = `cannot use the data folder ${JSON.stringify(dir)}: ${error.message}`;
  return new CniError(ErrorCode.IoFailure, message, { cause: error });
}
