import {
  close,
  isErrno,
  mkdirAll,
  O,
  open,
  readDir,
  readTextFile,
  readTextFileIfPresent,
  replaceTextFile,
  rmdir,
  sha256,
  unlinkIfPresent,
} from "@tscni/sys";
import { tryLockExclusive } from "@tscni/sys/net";
import { messageOf } from "@tscni/types";
import type { Attachment } from "../protocol.ts";
import type { Place } from "./container.ts";
import type { Identity } from "./identity.ts";
import type { Lease } from "./lease.ts";
import type { Log } from "./trace.ts";

/** What is kept of a lease, so that a daemon that starts goes on where another ended. */
export interface LeaseRecord extends Attachment {
  version: 1;
  /** The times in the lease count from the start of this boot. */
  bootId: string;
  place: Place;
  identity: Identity;
  lease: Lease;
  /** Whether the address may not be used any more. */
  expired: boolean;
}

/** Changes with every boot. */
export const bootId = (): string => readTextFile("/proc/sys/kernel/random/boot_id").trim();

/** The leases on disk: `<folder>/<network>/<container>:<interface>.json`, mode 0600. One daemon at a time. */
export class Store {
  readonly #folder: string;
  readonly #lock: number;

  /** Throws when the folder can't be had, or another daemon has it. */
  constructor(folder: string) {
    this.#folder = folder;
    mkdirAll(folder, 0o700);
    this.#lock = open(`${folder}/lock`, O.RDWR | O.CREAT, 0o600);
    if (tryLockExclusive(this.#lock)) return;
    close(this.#lock);
    throw new Error(
      `another DHCP daemon keeps its leases in ${folder}; choose another folder with -leasedir`,
    );
  }

  write(record: LeaseRecord): void {
    mkdirAll(this.#networkFolder(record.network), 0o700);
    replaceTextFile(this.#path(record), `${JSON.stringify(record)}\n`);
  }

  remove(attachment: Attachment): void {
    unlinkIfPresent(this.#path(attachment));
    try {
      rmdir(this.#networkFolder(attachment.network));
    } catch (error) {
      if (!isErrno(error, "ENOTEMPTY", "EEXIST", "ENOENT")) throw error;
    }
  }

  /** All that can be read; what can't is said, and left for people to look at. */
  readAll(log: Log): LeaseRecord[] {
    const records: LeaseRecord[] = [];
    for (const path of this.#files()) {
      try {
        const record = JSON.parse(readTextFileIfPresent(path) ?? "null") as LeaseRecord | null;
        if (record?.version !== 1 || !record.place || !record.identity || !record.lease)
          throw new Error("it is no record of a lease");
        records.push(record);
      } catch (error) {
        log(`ignoring ${path}: ${messageOf(error)}`);
      }
    }
    return records;
  }

  close(): void {
    close(this.#lock);
  }

  *#files(): Generator<string> {
    for (const network of readDir(this.#folder)) {
      if (network === "lock") continue;
      for (const name of readDir(`${this.#folder}/${network}`))
        if (name.endsWith(".json")) yield `${this.#folder}/${network}/${name}`;
    }
  }

  #networkFolder = (network: string): string => `${this.#folder}/${fileName(network)}`;

  #path = ({ network, containerId, ifName }: Attachment): string =>
    `${this.#networkFolder(network)}/${fileName(containerId)}:${ifName}.json`;
}

/** Ids may be longer than a file's name; "#" is in none of them. */
const fileName = (id: string): string => (id.length <= 100 ? id : `#${sha256(id).slice(0, 32)}`);
