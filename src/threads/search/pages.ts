import type { Visibility } from "../../access/visibility.ts";
import { PAGE_BYTES_AT_MOST } from "../../database/bounded-reads.ts";
import type { JsonObject } from "../../lib/json.ts";
import { createBreather, type Pacer } from "../../lib/pacer.ts";
import { matcherOf } from "./containment.ts";
import { createEffort, tooMuchToLookInto } from "./effort.ts";
import { extractFrom, parseExtract, type ExtractPath } from "./extract.ts";
import { LONG_ANSWER_BYTES } from "../long-answers.ts";
import { LONG_COLUMNS, writeRecord, type LongParts, type ThreadRecordRow } from "../record.ts";
import type { ThreadField, ThreadFilter, ThreadSearch } from "../schemas.ts";
import type { Candidate, RowFilter, RowOrder, ThreadSearcher } from "./search.ts";

/** A page of a search. */
export interface ThreadPage {
  /** The JSON text of the records, in pieces. */
  pieces: string[];
  total: number;
  /** Offset of the next page; undefined on the last one. A page that would get too large ends early. */
  next: number | undefined;
}

/** Who waits for a page. */
export interface PageAsking {
  /** Aborts when nobody waits any more; then the search rejects with its reason. */
  signal?: AbortSignal;
  /** Awaited when the page is found to be long, before more of it is read, and before a large state is. */
  whenLong?: (() => Promise<void>) | undefined;
}

/** Threads that are looked into at once where the filter is on values, which no index knows. */
const VALUES_BATCH = 250;
/** Threads that can't be looked into within the time of a search anyway are not begun with. */
const LOOKED_INTO_AT_MOST = 50_000;

export interface ThreadPages {
  search(visibility: Visibility<"threads">, search: ThreadSearch, asking?: PageAsking): Promise<ThreadPage>;
  count(visibility: Visibility<"threads">, filter: ThreadFilter, asking?: PageAsking): Promise<number>;
}

export interface ThreadPagesOptions {
  searcher: ThreadSearcher;
  /** Of looking into values. */
  pacer: Pacer;
  /**
   * JSON texts of the newest values, by thread, in the order of the rows, each made when it is asked for; threads that
   * never ran are missing. `keys`: the only keys that are looked at, of many threads. `whenLarge` is awaited before a
   * large state is read.
   */
  valuesOf(
    visibility: Visibility<"threads">,
    rows: readonly Candidate[],
    options: { keys?: ReadonlySet<string>; whenLarge?: (() => Promise<void>) | undefined },
  ): AsyncIterable<readonly [threadId: string, values: string]>;
}

/** Pages of threads, with the values that live in their checkpoints. */
export const createThreadPages = ({ searcher, pacer, valuesOf }: ThreadPagesOptions): ThreadPages => {
  /**
   * The ids of all threads whose newest values contain `part`, in the order asked for. What is left by the filters
   * that have an index is listed once, then looked into, as long as a search may take: what has begun before the
   * list was made is found once, whatever changes meanwhile.
   */
  const findByValues = async (
    visibility: Visibility<"threads">,
    search: RowFilter & RowOrder,
    part: JsonObject,
    { signal, whenLong }: PageAsking,
  ): Promise<string[]> => {
    const effort = createEffort(pacer, signal);
    const candidates = await searcher.candidates(visibility, search, LOOKED_INTO_AT_MOST, signal);
    if (candidates === undefined) {
      throw tooMuchToLookInto(`more than ${LOOKED_INTO_AT_MOST} threads would have to be looked into`);
    }
    const matches = matcherOf(part, effort.spend);
    const options = {
      keys: new Set(Object.keys(part)),
      whenLarge: whenLong && (() => effort.wait(whenLong())),
    };
    const touched = candidates.filter(({ untouched }) => !untouched);
    const found: string[] = [];
    for (let start = 0; start < touched.length; start += VALUES_BATCH) {
      await effort.goOn();
      const batch = touched.slice(start, start + VALUES_BATCH);
      for await (const [id, text] of valuesOf(visibility, batch, options)) {
        await effort.goOn();
        if (matches(JSON.parse(text))) found.push(id);
      }
    }
    return found;
  };

  /** The records of a page, as far as it may get; `rows` are all that were asked for. */
  const recordsOf = async (
    visibility: Visibility<"threads">,
    rows: readonly ThreadRecordRow[],
    { select, extract, needsValues }: Fields,
    { signal, whenLong }: PageAsking,
  ): Promise<string[]> => {
    const breathe = createBreather(pacer, signal);
    const values = needsValues
      ? valuesOf(visibility, rows, { whenLarge: whenLong })[Symbol.asyncIterator]()
      : undefined;
    const records: string[] = [];
    let bytes = 0;
    try {
      let known = await values?.next();
      for (const row of rows) {
        await breathe();
        known ??= await values?.next();
        let text: string | null = null;
        if (known !== undefined && known.done !== true && known.value[0] === row.thread_id) {
          text = known.value[1];
          known = undefined;
        }
        const record = recordOf(row, text, select, extract);
        const wasLong = bytes > LONG_ANSWER_BYTES;
        bytes += Buffer.byteLength(record);
        records.push(record);
        if (bytes >= PAGE_BYTES_AT_MOST) break;
        if (bytes > LONG_ANSWER_BYTES && !wasLong) await whenLong?.();
      }
    } finally {
      await values?.return?.();
    }
    return records;
  };

  return {
    async search(visibility, search, asking = {}) {
      const { signal } = asking;
      const { limit, offset, values: part, metadata, status, ids } = search;
      const fields = fieldsOf(search);
      const wanted = {
        metadata,
        status,
        ids,
        sortBy: search.sort_by ?? "created_at",
        sortOrder: search.sort_order ?? "desc",
      };
      let rows: ThreadRecordRow[];
      let total: number;
      if (part !== undefined && Object.keys(part).length > 0) {
        const found = await findByValues(visibility, wanted, part, asking);
        rows = await searcher.records(visibility, found.slice(offset, offset + limit), fields.parts, signal);
        total = found.length;
      } else {
        const page = { ...wanted, parts: fields.parts, limit, offset };
        ({ rows, total } = await searcher.page(visibility, page, signal));
      }
      const records = await recordsOf(visibility, rows, fields, asking);
      const next = offset + records.length;
      return {
        pieces: piecesOf(records),
        total,
        next: records.length > 0 && next < total ? next : undefined,
      };
    },

    async count(visibility, { values: part, ...filter }, asking = {}) {
      if (part === undefined || Object.keys(part).length === 0) {
        return await searcher.count(visibility, filter, asking.signal);
      }
      const inAnyOrder = { ...filter, sortBy: "thread_id", sortOrder: "asc" } as const;
      return (await findByValues(visibility, inAnyOrder, part, asking)).length;
    },
  };
};

/** What of each thread is in the answer. */
interface Fields {
  select: ReadonlySet<ThreadField> | undefined;
  extract: readonly ExtractPath[] | undefined;
  needsValues: boolean;
  parts: LongParts;
}

const fieldsOf = (search: ThreadSearch): Fields => {
  const extract = search.extract === undefined ? undefined : parseExtract(search.extract);
  const select = search.select === undefined ? undefined : new Set(search.select as readonly ThreadField[]);
  const isExtracted = (field: ThreadField): boolean => extract?.some(({ root }) => root === field) ?? false;
  const isNeeded = (field: ThreadField): boolean =>
    select === undefined || select.has(field) || isExtracted(field);
  const shown = LONG_COLUMNS.filter(isNeeded);
  const needsValues = isNeeded("values");
  // The metadata name the graph, which decides how the values read.
  const read = LONG_COLUMNS.filter(
    (column) => shown.includes(column) || (column === "metadata" && needsValues),
  );
  return { select, extract, needsValues, parts: { shown, read } };
};

/** One piece, unless it would be long: joining doubles what is in memory. */
const piecesOf = (records: readonly string[]): string[] => {
  const pieces: string[] = [];
  let piece: string[] = [];
  let length = 0;
  for (const [index, record] of records.entries()) {
    if (length > 0 && length + record.length > LONG_ANSWER_BYTES) {
      pieces.push(piece.join(""));
      piece = [];
      length = 0;
    }
    piece.push(index === 0 ? "[" : ",", record);
    length += record.length;
  }
  pieces.push(records.length === 0 ? "[]" : `${piece.join("")}]`);
  return pieces;
};

const recordOf = (
  row: ThreadRecordRow,
  values: string | null,
  select: ReadonlySet<ThreadField> | undefined,
  paths: readonly ExtractPath[] | undefined,
): string =>
  writeRecord(row, { values, select, extracted: paths && JSON.stringify(extracted(row, values, paths)) });

const extracted = (
  row: ThreadRecordRow,
  values: string | null,
  paths: readonly ExtractPath[],
): Record<string, unknown> => {
  const record = JSON.parse(row.record) as Record<string, unknown>;
  if (paths.some(({ root }) => root === "values")) record.values = JSON.parse(values ?? "null");
  return Object.fromEntries(paths.map(({ alias, root, steps }) => [alias, extractFrom(record[root], steps)]));
};
