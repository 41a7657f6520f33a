import { createHash } from "node:crypto";
import { watch, type FSWatcher } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";

export interface FileWatchOptions {
  /** Called with absolute paths of files whose content is another one; not again before it has resolved. */
  onChange(files: readonly string[]): Promise<void>;
  /** Milliseconds between two looks at all files. */
  everyMs?: number;
}

export interface FileWatch {
  /**
   * Watches these files from now on, and no others. Those that are new to it, and were written after `since` (milliseconds since
   * 1970), count as changed.
   */
  set(files: Iterable<string>, since: number): Promise<void>;
  /** Whether other modules beside them count, too: one that is missing may be what a broken project waits for. */
  countNeighbours(counts: boolean): void;
  close(): void;
}

/** What a file is known by: the first is cheap, the second is certain. */
interface Known {
  stamp: string;
  digest: string;
}

/** Editors write in bursts: so long nothing may happen before files are read, */
const SETTLE_MS = 25;
/** but a burst that does not end is cut. */
const BURST_MS = 250;
/** An editor that empties a file before it writes it is given so many times SETTLE_MS. */
const EMPTY_POLLS = 8;
const EVERY_MS = 1_000;

/** What an import without its extension may be waiting for: no log that something writes in the project. */
const MODULE = /\.(?:[cm]?[jt]sx?|json|node|wasm)$/;

const stampOf = async (file: string): Promise<{ stamp: string; changedAt: number; size: number }> => {
  const found = await stat(file).catch(() => undefined);
  return found === undefined
    ? { stamp: "", changedAt: 0, size: -1 }
    : { stamp: `${found.ino} ${found.size} ${found.mtimeMs}`, changedAt: found.mtimeMs, size: found.size };
};

const digestOf = async (file: string): Promise<string> => {
  const content = await readFile(file).catch(() => undefined);
  return content === undefined ? "" : createHash("sha256").update(content).digest("hex");
};

/**
 * Tells of changes of files. Node's own watchers on their folders say when to look, so that files which are written aside and
 * renamed are seen; what is told is what a look at the content says. All files are looked at from time to time besides: a folder
 * may have been removed and made anew, and mounts of containers tell nothing at all.
 */
export const createFileWatch = ({ onChange, everyMs = EVERY_MS }: FileWatchOptions): FileWatch => {
  const known = new Map<string, Known>();
  const folders = new Map<string, FSWatcher>();
  let hinted = new Set<string>();
  let neighboursCount = false;
  let burst: { timer: NodeJS.Timeout; since: number } | undefined;
  let pending = Promise.resolve();
  let isClosed = false;

  const readChanged = async (files: Iterable<string>): Promise<string[]> => {
    const changed: string[] = [];
    for (const file of files) {
      const before = known.get(file);
      let now = await stampOf(file);
      if (now.stamp === before?.stamp) continue;
      for (let looks = 0; now.size === 0 && looks < EMPTY_POLLS; looks += 1) {
        await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
        now = await stampOf(file);
      }
      const digest = await digestOf(file);
      // One that is not watched counts by being written at all.
      if (before !== undefined) known.set(file, { stamp: now.stamp, digest });
      if (digest !== before?.digest && (before !== undefined || digest !== "")) changed.push(file);
    }
    return changed;
  };

  const readFiles = (files: () => Iterable<string>): void => {
    pending = pending
      .then(async () => {
        if (isClosed) return;
        const changed = await readChanged(files());
        if (changed.length > 0) await onChange(changed);
      })
      .catch(() => undefined);
  };

  const readHinted = (): void => {
    burst = undefined;
    readFiles(() => {
      const files = hinted;
      hinted = new Set();
      return files;
    });
  };

  const hint = (file: string): void => {
    if (!known.has(file) && !(neighboursCount && MODULE.test(file))) return;
    hinted.add(file);
    const since = burst?.since ?? Date.now();
    clearTimeout(burst?.timer);
    const waitMs = Math.max(0, Math.min(SETTLE_MS, since + BURST_MS - Date.now()));
    burst = { timer: setTimeout(readHinted, waitMs), since };
  };

  const open = (folder: string): void => {
    if (folders.has(folder)) return;
    try {
      const watcher = watch(folder, { persistent: false }, (_event, name) => {
        if (name !== null) hint(join(folder, name));
      });
      watcher.on("error", () => close(folder));
      folders.set(folder, watcher);
    } catch {
      // It is not there, or the system has no watchers left: the look at all files sees to it.
    }
  };
  const close = (folder: string): void => {
    folders.get(folder)?.close();
    folders.delete(folder);
  };

  const everything = setInterval(() => {
    for (const file of known.keys()) open(dirname(file));
    readFiles(() => known.keys());
  }, everyMs);
  everything.unref();

  return {
    async set(files, since) {
      const wanted = new Set(files);
      for (const file of [...known.keys()]) if (!wanted.has(file)) known.delete(file);
      const unknown = [...wanted].filter((file) => !known.has(file));
      for (const file of unknown) {
        const { stamp, changedAt } = await stampOf(file);
        if (stamp !== "" && changedAt >= since) {
          known.set(file, { stamp: "", digest: "" });
          hint(file);
        } else known.set(file, { stamp, digest: await digestOf(file) });
      }
      const needed = new Set([...wanted].map((file) => dirname(file)));
      for (const folder of folders.keys()) if (!needed.has(folder)) close(folder);
      needed.forEach(open);
    },
    countNeighbours: (counts) => void (neighboursCount = counts),
    close() {
      isClosed = true;
      clearInterval(everything);
      clearTimeout(burst?.timer);
      for (const folder of folders.keys()) close(folder);
    },
  };
};
