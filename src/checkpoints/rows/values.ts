/**
 * A stored value: a line of JSON, kept in the row or apart by its hash if it is large, and the lists that it refers
 * to. The whole of a checkpoint's channels is one such text per channel.
 */

import { encode, treeText, type ListHook } from "../../values/encoding.ts";
import { contentHash } from "./content-hash.ts";
import type { ListBook, ListReference, LiveList } from "../lists/lists.ts";
import { toTriples, type Segment, toSegments } from "../lists/segments.ts";
import type { NewContent } from "./new-rows.ts";

export interface StoredValue {
  /** The tree's text, with markers for lists. Undefined if it is kept apart. */
  text: string | undefined;
  /** Where the text is kept apart. */
  hash: string | undefined;
  lists: ListReference[];
  /** If the value is itself a list: with its live elements, so that the next version can be compared with it. */
  live: LiveList | undefined;
  /** See ValueRecord. */
  withoutIds?: boolean;
}

/** What a task wrote. How it is stored is decided when it is sent: by then its elements may stand in a list. */
export interface WrittenValue {
  text: string;
  lists: ListReference[];
  /** The value itself, if it is an array. */
  array: readonly unknown[] | undefined;
}

/** How a stored value stands in a row: value or content hash, and its lists' segments as flat triples. */
export interface ValueRecord {
  v?: unknown;
  c?: string;
  l?: number[][];
  /** 1: the elements of the list had no `id` yet. Reducers give messages one, after the task has written them. */
  w?: 1;
}

/** A larger value is kept apart: the next checkpoints then refer to it. */
const INLINE_CHARACTERS_AT_MOST = 2_000;
/** A longer array is stored by element. */
const ARRAY_CHARACTERS_AT_MOST = 256;
/** An array inside a value becomes a list of its own only if it starts with so many elements that are known. */
const KNOWN_ELEMENTS_AT_LEAST = 8;
const WHOLE_LIST = treeText({ $type: "list", list: 0 });

/** Stores the values of one writer. */
export class ValueWriter {
  private readonly storedHashes = new Set<string>();
  private contents: NewContent[] = [];

  constructor(private readonly book: ListBook) {}

  takeNewContents(): NewContent[] {
    const taken = this.contents;
    this.contents = [];
    return taken;
  }

  /** Takes note of what was read, so that it isn't sent again. */
  rememberContent(hash: string): void {
    this.storedHashes.add(hash);
  }

  /** Stores the value of a channel, given what is stored of the same channel before. */
  storeChannel(channel: string, value: unknown, before: StoredValue | undefined): StoredValue {
    if (Array.isArray(value) && before?.live !== undefined)
      return this.storeList(this.book.plan(value, before.live));
    // Channels of LangGraph's own are replaced at every step: no list is worth it.
    if (Array.isArray(value) && !channel.startsWith("__") && !this.isKnownList(value)) {
      const texts = value.map((element) => treeText(encode(element)));
      const characters = texts.reduce((sum, text) => sum + text.length + 1, 1);
      if (characters > ARRAY_CHARACTERS_AT_MOST)
        return this.storeList(this.book.plan(value, undefined, texts));
    }
    return this.store(value);
  }

  /** Takes what a task wrote. */
  write(value: unknown): WrittenValue {
    const { text, lists } = this.toText(value);
    const isArray = Array.isArray(value) && lists.length === 0;
    return { text, lists: lists.map((list) => list.reference), array: isArray ? value : undefined };
  }

  /** A value's text. Lists in it whose elements are known are referred to. */
  private toText(value: unknown): { text: string; lists: LiveList[] } {
    const lists: LiveList[] = [];
    const hook: ListHook = (array) => {
      if (!this.isKnownList(array)) return undefined;
      return lists.push(this.book.plan(array, undefined)) - 1;
    };
    return { text: treeText(encode(value, hook)), lists };
  }

  private store(value: unknown): StoredValue {
    const { text, lists } = this.toText(value);
    const live = Array.isArray(value) && text === WHOLE_LIST ? lists[0] : undefined;
    const references = lists.map((list) => list.reference);
    if (text.length <= INLINE_CHARACTERS_AT_MOST) return { text, hash: undefined, lists: references, live };
    const hash = contentHash(text);
    if (!this.storedHashes.has(hash)) {
      this.storedHashes.add(hash);
      this.contents.push({ hash, text });
    }
    return { text: undefined, hash, lists: references, live };
  }

  private storeList(live: LiveList): StoredValue {
    return { text: WHOLE_LIST, hash: undefined, lists: [live.reference], live };
  }

  private isKnownList(array: readonly unknown[]): boolean {
    if (array.length < KNOWN_ELEMENTS_AT_LEAST) return false;
    for (let index = 0; index < KNOWN_ELEMENTS_AT_LEAST; index++)
      if (!this.book.knows(array[index])) return false;
    return true;
  }
}

/**
 * How what a task wrote is stored: by reference, if it became elements of a list since (a message that a node gave is
 * what the list then holds, but for the id that it may have got there); else like any value. What must be kept apart
 * for it is added to `contents`.
 */
export const storeWritten = (
  { text, lists, array }: WrittenValue,
  {
    book,
    isThere,
    contents,
  }: { book: ListBook; isThere: (segment: Segment) => boolean; contents: NewContent[] },
): StoredValue => {
  const found = array === undefined ? undefined : book.findNew(array);
  if (found !== undefined && array !== undefined && isThere(found.segment)) {
    const reference = { segments: [found.segment] };
    const stored = { text: WHOLE_LIST, hash: undefined, lists: [reference], live: undefined };
    if (`[${found.texts.join(",")}]` === text) return stored;
    const withoutIds = found.texts.map((element, index) => textWithoutId(element, array[index]));
    if (`[${withoutIds.join(",")}]` === text) return { ...stored, withoutIds: true };
  }
  if (text.length <= INLINE_CHARACTERS_AT_MOST) return { text, hash: undefined, lists, live: undefined };
  const hash = contentHash(text);
  contents.push({ hash, text });
  return { text: undefined, hash, lists, live: undefined };
};

/** The same text for a tree whose `id` does not stand at its top: nothing then resembles what was written. */
const textWithoutId = (text: string, element: unknown): string =>
  text.startsWith('{"lc":') || text.startsWith('{"$type":"object"')
    ? text
    : text.replace(`,"id":${JSON.stringify((element as { id?: unknown }).id)}`, "");

/** As `textWithoutId`, of a stored tree. */
const withoutId = (tree: unknown): unknown => {
  const { id: _, ...rest } = tree as { id?: unknown };
  return rest;
};

/** The text of a stored value as it stands in a row: a JSON object. `segmentsOf` says how its lists are written. */
export const recordText = (
  { text, hash, lists, withoutIds }: StoredValue,
  segmentsOf: (list: ListReference) => unknown = ({ segments }) => toTriples(segments),
): string => {
  const parts: string[] = [];
  if (hash !== undefined) parts.push(`"c":"${hash}"`);
  else if (text !== WHOLE_LIST) parts.push(`"v":${text}`);
  if (lists.length > 0) parts.push(`"l":${JSON.stringify(lists.map(segmentsOf))}`);
  if (withoutIds) parts.push('"w":1');
  return `{${parts.join(",")}}`;
};

/** What the row of a checkpoint or of writes names beside the texts, for the database's own use. */
export const rowReferences = (values: Iterable<StoredValue>): { segments: number[]; contents: string[] } => {
  const segments: number[] = [];
  const contents: string[] = [];
  for (const { lists, hash } of values) {
    if (hash !== undefined && !contents.includes(hash)) contents.push(hash);
    for (const list of lists) segments.push(...toTriples(list.segments));
  }
  return { segments, contents };
};

/** The tree that a record holds; `contents` gives the parsed texts that are kept apart. */
export const recordTree = (record: ValueRecord, contents: { content(hash: string): unknown }): unknown =>
  record.c !== undefined ? contents.content(record.c) : "v" in record ? record.v : WHOLE_LIST_TREE;

const WHOLE_LIST_TREE = Object.freeze(JSON.parse(WHOLE_LIST) as object);

/** The trees of a record's list, whose segments hold `trees`. */
export const listTrees = (record: ValueRecord, trees: unknown[]): unknown[] =>
  record.w === undefined ? trees : trees.map(withoutId);

/** True if the value of a record is itself a list. */
export const isWholeList = (record: ValueRecord): boolean => record.c === undefined && !("v" in record);

/** The stored value that a record stands for, to be referred to by later checkpoints. */
export const fromRecord = (record: ValueRecord): StoredValue => ({
  text: record.c !== undefined ? undefined : "v" in record ? treeText(record.v) : WHOLE_LIST,
  hash: record.c,
  lists: (record.l ?? []).map((triples) => ({ segments: toSegments(triples) })),
  live: undefined,
  ...(record.w === undefined ? {} : { withoutIds: true }),
});
