import { createHash } from "node:crypto";
import { watch, type FSWatcher } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";

interface FileWatchOptions {
  /** Gets absolute paths. The next call waits for the promise of this one. */
  onChange(files: readonly string[]): Promise<void>;
  everyMs?: number;
}

export interface FileWatch {
  /**
   * Replaces the watched files. A new one counts as changed if it was written after `since` (milliseconds since 1970).
   */
  set(files: Iterable<string>, since: number): Promise<void>;
  /** Whether unwatched modules in the same folders count, because a broken project may wait for a missing module. */
  countNeighbours(counts: boolean): void;
  close(): void;
}

/** The stamp is cheap to compare, the digest is certain. */
interface Known {
  stamp: string;
  digest: string;
}

/** Editors write in bursts, so files are read after this quiet time. */
const SETTLE_MS = 25;
/** The longest wait for the end of a burst. */
const BURST_MS = 250;
/** Time for an editor to fill a file that it has emptied. */
const EMPTY_POLLS = 8;
const EVERY_MS = 1_000;

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
 * Besides watchers on folders, a timer triggers scans: a folder may be recreated, and mounts of containers send no
 * events.
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
      // The timer's scan finds changes without a watcher.
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
