import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** The stamp is cheap to compare, the digest is certain. */
interface FileState {
  stamp: string;
  digest: string;
}

const MISSING: FileState = { stamp: "", digest: "" };
const EVERY_MS = 200;
/** Editors write in bursts, so files are read again until they are quiet for this time. */
const SETTLE_MS = 50;

const MODULE = /\.(?:[cm]?[jt]sx?|json|node|wasm)$/;

/** The modules of a folder and of those in it, without packages. */
const modulesIn = async (folder: string): Promise<string[]> => {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const found = entries.map(async (entry): Promise<string[]> => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return MODULE.test(entry.name) ? [path] : [];
    return entry.name.startsWith(".") || entry.name === "node_modules" ? [] : await modulesIn(path);
  });
  return (await Promise.all(found)).flat();
};

const stampOf = async (file: string): Promise<{ stamp: string; changedAt: number }> => {
  const found = await stat(file).catch(() => undefined);
  return found === undefined
    ? { stamp: "", changedAt: 0 }
    : { stamp: `${found.ino} ${found.size} ${found.mtimeMs}`, changedAt: found.mtimeMs };
};

const digestOf = async (file: string): Promise<string> => {
  const content = await readFile(file).catch(() => undefined);
  return content === undefined ? "" : createHash("sha256").update(content).digest("hex");
};

/** Looks at the files five times a second, because mounts of containers send no events. */
export class FileWatch {
  readonly #known = new Map<string, FileState>();
  readonly #closing = new AbortController();
  #folder: string | undefined;

  /** @param onChange gets absolute paths; the next call waits for the promise of this one */
  constructor(onChange: (files: readonly string[]) => Promise<void>) {
    // Closing rejects the wait.
    void this.#watch(onChange).catch(() => undefined);
  }

  async #watch(onChange: (files: readonly string[]) => Promise<void>): Promise<void> {
    const changed = new Set<string>();
    for (;;) {
      await delay(changed.size > 0 ? SETTLE_MS : EVERY_MS, undefined, {
        ref: false,
        signal: this.#closing.signal,
      });
      const found = await this.#changes();
      for (const file of found) changed.add(file);
      if (found.length > 0 || changed.size === 0) continue;
      await onChange([...changed]).catch(() => undefined);
      changed.clear();
    }
  }

  async #changes(): Promise<string[]> {
    const modules = this.#folder === undefined ? [] : await modulesIn(this.#folder);
    const changed: string[] = [];
    for (const file of new Set([...this.#known.keys(), ...modules])) {
      const before = this.#known.get(file) ?? MISSING;
      const { stamp } = await stampOf(file);
      if (stamp === before.stamp) continue;
      const digest = await digestOf(file);
      this.#known.set(file, { stamp, digest });
      if (digest !== before.digest) changed.push(file);
    }
    return changed;
  }

  /**
   * Replaces the watched files. A new one counts as changed if it was written after `since` (milliseconds since 1970).
   * @param folder all its modules are watched, too: a broken project may wait for a missing one
   */
  async set(files: Iterable<string>, since: number, folder?: string): Promise<void> {
    const wanted = new Set([...files, ...(folder === undefined ? [] : await modulesIn(folder))]);
    for (const file of this.#known.keys()) if (!wanted.has(file)) this.#known.delete(file);
    for (const file of wanted) {
      if (this.#known.has(file)) continue;
      const { stamp, changedAt } = await stampOf(file);
      this.#known.set(file, changedAt >= since ? MISSING : { stamp, digest: await digestOf(file) });
    }
    this.#folder = folder;
  }

  close(): void {
    this.#closing.abort();
  }
}
