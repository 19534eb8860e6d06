import { type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import { basename, dirname, join } from "node:path";

export interface WatchOptions {
  /** After an event so long nothing more has to come, ms: installers write several files. */
  settleMs?: number;
  /** How often to look without an event, ms: some file systems and swaps give none. */
  pollMs?: number;
  /** Ends it, as the function does that is returned. */
  signal?: AbortSignal;
}

/**
 * Calls back whenever something in a folder may have changed: a file made, written, renamed or deleted, the target of a
 * symbolic link swapped as Kubernetes does it, the folder itself removed and made again. What decides is a picture
 * of the files; the system's events only tell when to take the next one. Returns what ends it.
 */
export function watchFolder(
  folder: string,
  changed: () => void,
  { settleMs = 50, pollMs = 5000, signal }: WatchOptions = {},
): () => void {
  let before = pictureOf(folder);
  let timer: NodeJS.Timeout | undefined;
  const look = () => {
    watchers.renew();
    const now = pictureOf(folder);
    if (now === before) return;
    before = now;
    changed();
  };
  const watchers = new Watchers(folder, () => {
    clearTimeout(timer);
    timer = setTimeout(look, settleMs);
  });
  watchers.renew();
  const poll = setInterval(look, pollMs);
  poll.unref();
  const end = () => {
    clearTimeout(timer);
    clearInterval(poll);
    watchers.close();
    signal?.removeEventListener("abort", end);
  };
  signal?.addEventListener("abort", end, { once: true });
  if (signal?.aborted) end();
  return end;
}

/** The system's watches on a folder and on the one that holds it, set anew when the folder is another one. */
class Watchers {
  readonly #folder: string;
  readonly #event: () => void;
  #own: { watcher: FSWatcher; identity: string } | undefined;
  #parent: FSWatcher | undefined;

  constructor(folder: string, event: () => void) {
    this.#folder = folder;
    this.#event = event;
  }

  renew(): void {
    const identity = identityOf(this.#folder);
    if (this.#own?.identity !== identity) {
      this.#own?.watcher.close();
      const watcher = identity === undefined ? undefined : this.#watch(this.#folder);
      this.#own = watcher && identity !== undefined ? { watcher, identity } : undefined;
    }
    this.#parent ??= this.#watch(dirname(this.#folder), basename(this.#folder));
  }

  close(): void {
    this.#own?.watcher.close();
    this.#parent?.close();
  }

  /** Undefined when it can't be watched (gone, no watches left): the next look tries again. */
  #watch(path: string, only?: string): FSWatcher | undefined {
    try {
      const watcher = watch(path, { persistent: false }, (_, name) => {
        if (only === undefined || name === null || name === only) this.#event();
      });
      watcher.on("error", () => {
        watcher.close();
        if (this.#parent === watcher) this.#parent = undefined;
        if (this.#own?.watcher === watcher) this.#own = undefined;
      });
      return watcher;
    } catch {
      return undefined;
    }
  }
}

/** Which folder this is, whatever its name. */
function identityOf(folder: string): string | undefined {
  try {
    const { dev, ino } = statSync(folder);
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

/** What is in a folder and, for the drop-ins of a network, one level below it, links followed. */
function pictureOf(folder: string, depth = 1): string {
  let names: string[];
  try {
    names = readdirSync(folder).sort();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "unreadable";
  }
  return names.map((name) => pictureOfFile(join(folder, name), name, depth)).join("\n");
}

function pictureOfFile(path: string, name: string, depth: number): string {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs, mode } = statSync(path);
    const isFolder = (mode & 0o170000) === 0o040000;
    if (isFolder) return depth === 0 ? name : `${name}/${ino}\n${pictureOf(path, depth - 1)}`;
    return `${name} ${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch {
    return `${name} leads nowhere`;
  }
}
