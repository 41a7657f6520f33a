import type { Queryable } from "../../../platform/database/database.ts";

export interface WantedParts {
  ranges: Array<{ threadId: string; list: number; from: number; to: number; ordinal: number }>;
  contents: Array<{ threadId: string; hash: string; ordinal: number }>;
}

export interface Bounds {
  bytesAtMost: number;
  /** False: the first ordinal is read in full. */
  isBounded: boolean;
}

/**
 * Chooses what one statement reads. The parts of a distributed database share the limit, or only one part is asked.
 * `end`: the first ordinal that is left for the next statement.
 */
export const withinBounds = (
  { partOf }: Queryable,
  { ranges, contents }: WantedParts,
  { bytesAtMost, isBounded }: Bounds,
) => {
  if (partOf === undefined) return { ranges, contents, bytesAtMost, threads: undefined, end: Infinity };
  const wanted = [...ranges, ...contents];
  const threads = [...new Set(wanted.map(({ threadId }) => threadId))];
  const parts = new Set(threads.map(partOf));
  const share = isBounded ? Math.ceil(bytesAtMost / parts.size) : bytesAtMost;
  const all = { ranges, contents, bytesAtMost: share, threads, end: Infinity };
  if (isBounded || parts.size === 1) return all;
  const first = wanted.reduce((least, one) => (one.ordinal < least.ordinal ? one : least));
  const isElsewhere = (one: { threadId: string }) => partOf(one.threadId) !== partOf(first.threadId);
  const end = Math.min(...wanted.filter(isElsewhere).map(({ ordinal }) => ordinal));
  const isBefore = (one: { ordinal: number }) => one.ordinal < end;
  return {
    ...all,
    ranges: ranges.filter(isBefore),
    contents: contents.filter(isBefore),
    threads: [first.threadId],
    end,
  };
};
