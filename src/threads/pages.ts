import type { JsonObject } from "../lib/json.ts";
import { matcherOf } from "./containment.ts";
import { createEffort, tooMuchToLookInto } from "./effort.ts";
import { extractFrom, parseExtract, type ExtractPath } from "./extract.ts";
import { writeRecord, type ThreadRecordRow } from "./record.ts";
import type { ThreadField, ThreadFilter, ThreadSearch } from "./schemas.ts";
import type { Candidate, RowFilter, RowOrder, ThreadSearcher } from "./search.ts";

/** A page of a search, as JSON text. */
export interface ThreadPage {
  json: string;
  total: number;
  /** Offset of the next page; undefined on the last one. */
  next: number | undefined;
}

/** Threads that are looked into at once where the filter is on values, which no index knows. */
const VALUES_BATCH = 200;
/** Threads that can't be looked into within the time of a search anyway are not begun with. */
const LOOKED_INTO_AT_MOST = 50_000;

export interface ThreadPages {
  /** Rejects with the signal's reason when that aborts: nobody waits for the page any more. */
  search(search: ThreadSearch, signal?: AbortSignal): Promise<ThreadPage>;
  count(filter: ThreadFilter, signal?: AbortSignal): Promise<number>;
}

export interface ThreadPagesOptions {
  searcher: ThreadSearcher;
  /** JSON texts of the newest values, by thread; threads that never ran are missing. */
  valuesOf(rows: readonly Candidate[]): Promise<ReadonlyMap<string, string>>;
}

/** Pages of threads, with the values that live in their checkpoints. */
export const createThreadPages = ({ searcher, valuesOf }: ThreadPagesOptions): ThreadPages => {
  /**
   * The ids of all threads whose newest values contain `part`, in the order asked for. What is left by the filters
   * that have an index is listed once, then looked into, as long as a search may take: what has begun before the
   * list was made is found once, whatever changes meanwhile.
   */
  const findByValues = async (
    search: RowFilter & RowOrder,
    part: JsonObject,
    signal: AbortSignal | undefined,
  ): Promise<string[]> => {
    const effort = createEffort(signal);
    const candidates = await searcher.candidates(search, LOOKED_INTO_AT_MOST + 1, signal);
    if (candidates.length > LOOKED_INTO_AT_MOST) {
      throw tooMuchToLookInto(`more than ${LOOKED_INTO_AT_MOST} threads would have to be looked into`);
    }
    const matches = matcherOf(part, effort.spend);
    const touched = candidates.filter(({ untouched }) => !untouched);
    const found: string[] = [];
    for (let start = 0; start < touched.length; start += VALUES_BATCH) {
      await effort.goOn();
      const batch = touched.slice(start, start + VALUES_BATCH);
      const values = await valuesOf(batch);
      for (const { thread_id: id } of batch) {
        await effort.goOn();
        const text = values.get(id);
        if (text !== undefined && matches(JSON.parse(text))) found.push(id);
      }
    }
    return found;
  };

  return {
    async search(search: ThreadSearch, signal?: AbortSignal): Promise<ThreadPage> {
      const { limit, offset, values: part, metadata, status, ids } = search;
      const paths = search.extract === undefined ? undefined : parseExtract(search.extract);
      const wanted = {
        metadata,
        status,
        ids,
        sortBy: search.sort_by ?? "created_at",
        sortOrder: search.sort_order ?? "desc",
      };
      const select =
        search.select === undefined ? undefined : new Set(search.select as readonly ThreadField[]);
      let rows: ThreadRecordRow[];
      let total: number;
      if (part !== undefined && Object.keys(part).length > 0) {
        const found = await findByValues(wanted, part, signal);
        rows = await searcher.records(found.slice(offset, offset + limit), signal);
        total = found.length;
      } else ({ rows, total } = await searcher.page({ ...wanted, limit, offset }, signal));
      const needsValues =
        select === undefined ||
        select.has("values") ||
        (paths?.some(({ root }) => root === "values") ?? false);
      const values = needsValues ? await valuesOf(rows) : new Map<string, string>();
      const json = rows.map((row) => recordOf(row, values.get(row.thread_id) ?? null, select, paths));
      return pageOf(json, total, offset);
    },

    async count({ values: part, ...filter }: ThreadFilter, signal?: AbortSignal): Promise<number> {
      if (part === undefined || Object.keys(part).length === 0) return await searcher.count(filter, signal);
      return (await findByValues({ ...filter, sortBy: "thread_id", sortOrder: "asc" }, part, signal)).length;
    },
  };
};

const pageOf = (records: string[], total: number, offset: number): ThreadPage => {
  const next = offset + records.length;
  return {
    json: `[${records.join(",")}]`,
    total,
    next: records.length > 0 && next < total ? next : undefined,
  };
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
