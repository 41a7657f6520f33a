/**
 * A stored value: a line of JSON, in the row or, if large, as a content with a hash, and the lists that the value
 * refers to.
 */

import { treeText } from "../../values/encoding.ts";
import { toSegments, toTriples } from "../lists/segments.ts";
import type { ListReference, LiveList } from "../lists/stored-list.ts";

export interface StoredValue {
  /** The tree's text, with markers for lists. Undefined if the value is a content. */
  text: string | undefined;
  /** The hash of the content. */
  hash: string | undefined;
  lists: ListReference[];
  /** For a list: its live elements, to compare with the next version. */
  live: LiveList | undefined;
  /** See ValueRecord. */
  withoutIds?: boolean;
}

/** A stored value in a row. Keys have one letter, since every checkpoint has a record for each channel. */
export interface ValueRecord {
  /** The value's tree. Without `v` and `c` the value is itself the list. */
  v?: unknown;
  /** The hash of the content with the tree. */
  c?: string;
  /** The segments of each list that the tree refers to, as flat triples. */
  l?: number[][];
  /** 1: the elements of the list had no `id` yet. Reducers add ids to messages after the task has written them. */
  w?: 1;
}

/** The text of a value that is itself a stored list. */
export const WHOLE_LIST = treeText({ $type: "list", list: 0 });

/** The tree of an element as a task wrote it, before it got its `id`. */
const withoutId = (tree: unknown): unknown => {
  const { id: _, ...rest } = tree as { id?: unknown };
  return rest;
};

/** The text of a stored value in a row: a JSON object. `segmentsOf`: the form of its lists. */
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

/** Segments and contents of a row, for the database's own use. */
export const rowReferences = (values: Iterable<StoredValue>): { segments: number[]; contents: string[] } => {
  const segments: number[] = [];
  const contents: string[] = [];
  for (const { lists, hash } of values) {
    if (hash !== undefined && !contents.includes(hash)) contents.push(hash);
    for (const list of lists) segments.push(...toTriples(list.segments));
  }
  return { segments, contents };
};

/** The tree of a record; `contents` returns parsed contents. */
export const recordTree = (record: ValueRecord, contents: { content(hash: string): unknown }): unknown =>
  record.c !== undefined ? contents.content(record.c) : "v" in record ? record.v : WHOLE_LIST_TREE;

const WHOLE_LIST_TREE = Object.freeze(JSON.parse(WHOLE_LIST) as object);

/** The trees of a record's list; `trees`: those of its segments. */
export const listTrees = (record: ValueRecord, trees: unknown[]): unknown[] =>
  record.w === undefined ? trees : trees.map(withoutId);

/** True if the value of a record is itself a list. */
export const isWholeList = (record: ValueRecord): boolean => record.c === undefined && !("v" in record);

/** The stored value of a record, for references from later checkpoints. */
export const fromRecord = (record: ValueRecord): StoredValue => ({
  text: record.c !== undefined ? undefined : "v" in record ? treeText(record.v) : WHOLE_LIST,
  hash: record.c,
  lists: (record.l ?? []).map((triples) => ({ segments: toSegments(triples) })),
  live: undefined,
  ...(record.w === undefined ? {} : { withoutIds: true }),
});
