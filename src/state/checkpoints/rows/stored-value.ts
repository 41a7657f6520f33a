/**
 * A line of JSON in the row, or a content with a hash if the value is large. `lists` are the lists that the value
 * refers to.
 */

import { treeText } from "../../values/encoding.ts";
import { toSegments, toTriples } from "../lists/segments.ts";
import type { ListReference, LiveList } from "../lists/stored-list.ts";

export interface StoredValue {
  /** With markers for lists. Undefined if the value is a content. */
  text: string | undefined;
  hash: string | undefined;
  lists: ListReference[];
  /** Only for a list: the next version is compared with it. */
  live: LiveList | undefined;
  withoutIds?: boolean;
}

/** Keys have one letter, since every checkpoint has a record for each channel. */
export interface ValueRecord {
  /** The tree. Without `v` and `c` the value is itself the list. */
  v?: unknown;
  /** The hash of the content. */
  c?: string;
  /** Segments of each list, as flat triples. */
  l?: number[][];
  /** 1: the elements had no `id` yet. Reducers add ids later. */
  w?: 1;
}

/** For a value that is itself a stored list. */
export const WHOLE_LIST = treeText({ $type: "list", list: 0 });

/** The element as the task wrote it, before a reducer added its `id`. */
const withoutId = (tree: unknown): unknown => {
  const { id: _, ...rest } = tree as { id?: unknown };
  return rest;
};

/** A JSON object. `segmentsOf`: the form of its lists. */
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

export const rowReferences = (values: Iterable<StoredValue>): { segments: number[]; contents: string[] } => {
  const segments: number[] = [];
  const contents: string[] = [];
  for (const { lists, hash } of values) {
    if (hash !== undefined && !contents.includes(hash)) contents.push(hash);
    for (const list of lists) segments.push(...toTriples(list.segments));
  }
  return { segments, contents };
};

export const recordTree = (record: ValueRecord, contents: { content(hash: string): unknown }): unknown =>
  record.c !== undefined ? contents.content(record.c) : "v" in record ? record.v : WHOLE_LIST_TREE;

const WHOLE_LIST_TREE = Object.freeze(JSON.parse(WHOLE_LIST) as object);

/** `trees`: the elements of the record's segments. */
export const listTrees = (record: ValueRecord, trees: unknown[]): unknown[] =>
  record.w === undefined ? trees : trees.map(withoutId);

export const isWholeList = (record: ValueRecord): boolean => record.c === undefined && !("v" in record);

export const fromRecord = (record: ValueRecord): StoredValue => ({
  text: record.c !== undefined ? undefined : "v" in record ? treeText(record.v) : WHOLE_LIST,
  hash: record.c,
  lists: (record.l ?? []).map((triples) => ({ segments: toSegments(triples) })),
  live: undefined,
  ...(record.w === undefined ? {} : { withoutIds: true }),
});
