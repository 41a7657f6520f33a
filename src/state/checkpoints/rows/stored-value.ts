/**
 * A stored value: a line of JSON, kept in the row or apart by its hash if it is large, and the lists that it refers
 * to. The whole of a checkpoint's channels is one such text per channel.
 */

import { treeText } from "../../values/encoding.ts";
import { toSegments, toTriples } from "../lists/segments.ts";
import type { ListReference, LiveList } from "../lists/stored-list.ts";

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

/** How a stored value stands in a row. One letter a key: every checkpoint has one of these for each channel. */
export interface ValueRecord {
  /** The value's tree. Without `v` and `c` the value is itself the list. */
  v?: unknown;
  /** The hash of the content where the tree is kept apart. */
  c?: string;
  /** The segments of each list that the tree refers to, as flat triples. */
  l?: number[][];
  /** 1: the elements of the list had no `id` yet. Reducers give messages one, after the task has written them. */
  w?: 1;
}

/** The text of a value that is itself a list which is stored by element. */
export const WHOLE_LIST = treeText({ $type: "list", list: 0 });

/** A tree of an element as a task has written it: it got its `id` later. */
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
