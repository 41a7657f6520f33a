/**
 * What this process remembers of threads: parsed elements and contents, which are immutable in the database and are
 * never handed out, only revived from. So it can't be stale, only incomplete, whatever other processes write.
 */

import { revive } from "../../values/reviving.ts";
import { StateStorageError } from "../../../platform/domain/errors.ts";
import { toWireJson } from "../../values/wire-json.ts";

/** Elements of a list without a gap. */
interface CachedRange {
  /** Position of the first tree. */
  start: number;
  trees: unknown[];
  /** The elements as clients see them, made when they are first asked for. */
  wireTexts: Array<string | undefined>;
}

interface CachedThread {
  /** By list; usually one range, from 0. */
  lists: Map<number, CachedRange[]>;
  contents: Map<string, unknown>;
  bytes: number;
}

/** What a read need not fetch. */
export interface Coverage {
  lists: number[];
  starts: number[];
  ends: number[];
  contents: string[];
}

/** Elements at consecutive positions of one list, as they were read from the database. */
export interface StoredElements {
  list: number;
  position: number;
  texts: string[];
}

/** A parsed tree takes about so many bytes per character of its text, and so many more. */
const BYTES_PER_CHARACTER = 2;
const BYTES_PER_ELEMENT = 300;
/** What the entry of a thread takes that holds nothing: 923 bytes were measured with 200,000 of them. */
const BYTES_PER_THREAD = 1_000;
const NOTHING: Coverage = { lists: [], starts: [], ends: [], contents: [] };

export class ElementCache {
  /** Least recently used first. */
  private readonly threads = new Map<string, CachedThread>();
  private bytes = 0;

  /** `bytesAtMost` bounds the number of threads, too: each takes bytes of its own, also one that holds nothing. */
  constructor(private readonly bytesAtMost: number) {}

  /** How many threads are remembered. */
  get threadCount(): number {
    return this.threads.size;
  }

  /** What all that is remembered takes, about. */
  get byteCount(): number {
    return this.bytes;
  }

  /** The thread's part of the cache; it stays usable when it has been dropped to make room. */
  thread(threadId: string): ThreadElements {
    const known = this.threads.get(threadId);
    const thread = known ?? { lists: new Map(), contents: new Map(), bytes: 0 };
    if (known !== undefined) this.threads.delete(threadId);
    this.threads.set(threadId, thread);
    if (known === undefined) this.grow(threadId, thread, BYTES_PER_THREAD);
    return new ThreadElements(thread, (bytes) => this.grow(threadId, thread, bytes));
  }

  /** As `thread`, but remembers nothing new: who goes through many threads once must not push out what others work with. */
  peek(threadId: string): ThreadElements {
    const thread = this.threads.get(threadId) ?? { lists: new Map(), contents: new Map(), bytes: 0 };
    return new ThreadElements(thread, (bytes) => this.grow(threadId, thread, bytes));
  }

  forgetAll(): void {
    this.threads.clear();
    this.bytes = 0;
  }

  forget(threadId: string): void {
    this.bytes -= this.threads.get(threadId)?.bytes ?? 0;
    this.threads.delete(threadId);
  }

  private grow(threadId: string, thread: CachedThread, bytes: number): void {
    thread.bytes += bytes;
    if (this.threads.get(threadId) !== thread) return; // dropped meanwhile
    this.bytes += bytes;
    for (const [oldest] of this.threads) {
      if (this.bytes <= this.bytesAtMost) break;
      this.forget(oldest);
    }
  }
}

/** The remembered elements and contents of one thread. */
export class ThreadElements {
  constructor(
    private readonly cached: CachedThread,
    private readonly grow: (bytes: number) => void,
  ) {}

  /** What all that is remembered of the thread takes, about: twice its characters or more. */
  get byteCount(): number {
    return this.cached.bytes;
  }

  coverage(): Coverage {
    const { lists, contents } = this.cached;
    if (lists.size === 0 && contents.size === 0) return NOTHING;
    const coverage: Coverage = { lists: [], starts: [], ends: [], contents: [...contents.keys()] };
    for (const [list, ranges] of lists) {
      const longest = ranges.reduce((one, other) => (other.trees.length > one.trees.length ? other : one));
      coverage.lists.push(list);
      coverage.starts.push(longest.start);
      coverage.ends.push(endOf(longest));
    }
    return coverage;
  }

  hasContent(hash: string): boolean {
    return this.cached.contents.has(hash);
  }

  /** The parsed text that is kept apart under this hash. Throws if it is not there. */
  content(hash: string): unknown {
    if (!this.cached.contents.has(hash))
      throw new StateStorageError(`The stored content ${hash} is missing.`);
    return this.cached.contents.get(hash);
  }

  addContent(hash: string, text: string): void {
    if (this.cached.contents.has(hash)) return;
    this.cached.contents.set(hash, JSON.parse(text));
    this.grow(text.length * BYTES_PER_CHARACTER + BYTES_PER_ELEMENT);
  }

  /** Those of one list should come in order of position. `trees` are those of the texts, if they were parsed already. */
  addElements({ list, position, texts }: StoredElements, trees?: readonly unknown[]): void {
    if (texts.length === 0) return;
    let ranges = this.cached.lists.get(list);
    if (ranges === undefined) this.cached.lists.set(list, (ranges = []));
    let range = ranges.find((range) => position >= range.start && position <= endOf(range));
    if (range === undefined) ranges.push((range = { start: position, trees: [], wireTexts: [] }));
    let characters = 0;
    for (let offset = endOf(range) - position; offset < texts.length; offset++) {
      const text = texts[offset] as string;
      characters += text.length;
      range.trees.push(trees === undefined ? JSON.parse(text) : trees[offset]);
    }
    absorbNeighbours(ranges, range);
    this.grow(characters * BYTES_PER_CHARACTER + texts.length * BYTES_PER_ELEMENT);
  }

  has(list: number, from: number, to: number): boolean {
    return this.find(list, from, to) !== undefined;
  }

  /** The trees of the elements [from, to) of a list. Throws if they are not all there. */
  trees(list: number, from: number, to: number): unknown[] {
    const { start, trees } = this.range(list, from, to);
    return trees.slice(from - start, to - start);
  }

  /** The elements [from, to) as clients see them, added to `texts`. Throws if they are not all there. */
  addWireTexts(list: number, from: number, to: number, texts: string[]): void {
    const { start, trees, wireTexts } = this.range(list, from, to);
    let characters = 0;
    for (let index = from - start; index < to - start; index++) {
      let text = wireTexts[index];
      if (text === undefined) {
        wireTexts[index] = text = toWireJson(revive(trees[index]));
        characters += text.length;
      }
      texts.push(text);
    }
    if (characters > 0) this.grow(characters * BYTES_PER_CHARACTER);
  }

  private find(list: number, from: number, to: number): CachedRange | undefined {
    return this.cached.lists.get(list)?.find((range) => from >= range.start && to <= endOf(range));
  }

  private range(list: number, from: number, to: number): CachedRange {
    const range = this.find(list, from, to);
    if (range === undefined)
      throw new StateStorageError(`Elements ${from} to ${to} of the stored list ${list} are missing.`);
    return range;
  }
}

/** Ranges that a grown one has come to touch become part of it. */
const absorbNeighbours = (ranges: CachedRange[], range: CachedRange): void => {
  for (let index = 0; index < ranges.length;) {
    const other = ranges[index] as CachedRange;
    if (other === range || other.start < range.start || other.start > endOf(range)) {
      index += 1;
      continue;
    }
    const known = endOf(range) - other.start;
    for (const tree of other.trees.slice(known)) range.trees.push(tree);
    ranges.splice(index, 1);
    index = 0;
  }
};

const endOf = (range: CachedRange): number => range.start + range.trees.length;
