/** Elements and contents never change in the database. Therefore the cache may be incomplete, but never stale. */

import { LRUCache } from "lru-cache";
import { revive } from "../../values/reviving.ts";
import { StateStorageError } from "../../../platform/domain/errors.ts";
import { wholeLength } from "../../values/large-strings.ts";
import { toWireJson } from "../../values/wire-json.ts";

interface CachedRange {
  start: number;
  trees: unknown[];
  wireTexts: Array<string | undefined>;
}

interface CachedThread {
  /** Usually one range, from 0. */
  lists: Map<number, CachedRange[]>;
  contents: Map<string, unknown>;
  bytes: number;
}

export interface Coverage {
  lists: number[];
  starts: number[];
  ends: number[];
  contents: string[];
}

export interface StoredElements {
  list: number;
  position: number;
  texts: string[];
}

/** Approximate memory per character of a tree's text, and per tree. */
const BYTES_PER_CHARACTER = 2;
const BYTES_PER_ELEMENT = 300;
/** 923 bytes, measured with 200,000 empty threads. */
const BYTES_PER_THREAD = 1_000;
const NOTHING: Coverage = { lists: [], starts: [], ends: [], contents: [] };

export class ElementCache {
  private readonly threads: LRUCache<string, CachedThread>;

  /** Also bounds the number of threads, because an empty entry has a size. */
  constructor(bytesAtMost: number) {
    this.threads = new LRUCache({ maxSize: bytesAtMost });
  }

  get threadCount(): number {
    return this.threads.size;
  }

  get byteCount(): number {
    return this.threads.calculatedSize;
  }

  /** The result stays usable after the cache drops the thread. */
  thread(threadId: string): ThreadElements {
    const known = this.threads.get(threadId);
    const thread = known ?? { lists: new Map(), contents: new Map(), bytes: BYTES_PER_THREAD };
    if (known === undefined) this.threads.set(threadId, thread, { size: thread.bytes });
    return new ThreadElements(thread, (bytes) => this.grow(threadId, thread, bytes));
  }

  /** Adds no thread, because a scan of many threads must not evict threads in use. */
  peek(threadId: string): ThreadElements {
    const thread = this.threads.peek(threadId) ?? { lists: new Map(), contents: new Map(), bytes: 0 };
    return new ThreadElements(thread, (bytes) => this.grow(threadId, thread, bytes));
  }

  forgetAll(): void {
    this.threads.clear();
  }

  forget(threadId: string): void {
    this.threads.delete(threadId);
  }

  private grow(threadId: string, thread: CachedThread, bytes: number): void {
    thread.bytes += bytes;
    if (this.threads.peek(threadId) !== thread) return; // dropped meanwhile
    // `set` does not update the size of an unchanged value.
    this.threads.delete(threadId);
    this.threads.set(threadId, thread, { size: thread.bytes });
  }
}

export class ThreadElements {
  constructor(
    private readonly cached: CachedThread,
    private readonly grow: (bytes: number) => void,
  ) {}

  /** At least two bytes per character. */
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

  /** `trees`: of texts without their large strings. */
  addElements({ list, position, texts }: StoredElements, trees?: readonly unknown[]): void {
    if (texts.length === 0) return;
    let ranges = this.cached.lists.get(list);
    if (ranges === undefined) this.cached.lists.set(list, (ranges = []));
    let range = ranges.find((range) => position >= range.start && position <= endOf(range));
    if (range === undefined) ranges.push((range = { start: position, trees: [], wireTexts: [] }));
    let characters = 0;
    for (let offset = endOf(range) - position; offset < texts.length; offset++) {
      const text = texts[offset] as string;
      characters += trees === undefined ? text.length : wholeLength(text);
      range.trees.push(trees === undefined ? JSON.parse(text) : trees[offset]);
    }
    absorbNeighbours(ranges, range);
    this.grow(characters * BYTES_PER_CHARACTER + texts.length * BYTES_PER_ELEMENT);
  }

  has(list: number, from: number, to: number): boolean {
    return this.find(list, from, to) !== undefined;
  }

  /** Elements [from, to). Throws StateStorageError if one is missing. */
  trees(list: number, from: number, to: number): unknown[] {
    const { start, trees } = this.range(list, from, to);
    return trees.slice(from - start, to - start);
  }

  /** Elements [from, to), as in `trees`. */
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
