import type { JsonObject } from "../lib/json.ts";
import { contains, extractFrom, parseExtract, type ExtractPath } from "./extract.ts";
import { writeRecord, type ThreadRecordRow } from "./record.ts";
import type { ThreadField, ThreadFilter, ThreadSearch } from "./schemas.ts";
import type { RowSearch, ThreadSearcher } from "./search.ts";

/** A page of a search, as JSON text. */
export interface ThreadPage {
  json: string;
  total: number;
  /** Offset of the next page; undefined on the last one. */
  next: number | undefined;
}

/** Threads that are read at once where the filter is on values, which no index knows. */
const VALUES_BATCH = 500;

export interface ThreadPages {
  search(search: ThreadSearch): Promise<ThreadPage>;
  count(filter: ThreadFilter): Promise<number>;
}

export interface ThreadPagesOptions {
  searcher: ThreadSearcher;
  /** JSON texts of the newest values, by thread; threads that never ran are missing. */
  valuesOf(rows: readonly ThreadRecordRow[]): Promise<ReadonlyMap<string, string>>;
}

/** Pages of threads, with the values that live in their checkpoints. */
export const createThreadPages = ({ searcher, valuesOf }: ThreadPagesOptions): ThreadPages => {
  /**
   * The threads whose newest values contain `part`: the asked page of them, and how many there are. They are read
   * in batches, since no index knows values, and only the page is kept.
   */
  const pageByValues = async (
    search: RowSearch,
    part: JsonObject,
  ): Promise<{ found: [ThreadRecordRow, string][]; total: number }> => {
    const found: [ThreadRecordRow, string][] = [];
    let matching = 0;
    for (let offset = 0; ; offset += VALUES_BATCH) {
      const { rows, total } = await searcher.page({ ...search, limit: VALUES_BATCH, offset });
      const values = await valuesOf(rows);
      for (const row of rows) {
        const text = values.get(row.thread_id);
        if (text === undefined || !contains(JSON.parse(text), part)) continue;
        if (matching >= search.offset && found.length < search.limit) found.push([row, text]);
        matching += 1;
      }
      if (rows.length === 0 || offset + rows.length >= total) return { found, total: matching };
    }
  };

  return {
    async search(search: ThreadSearch): Promise<ThreadPage> {
      const { limit, offset, values: part } = search;
      const paths = search.extract === undefined ? undefined : parseExtract(search.extract);
      const rowSearch: RowSearch = {
        metadata: search.metadata,
        status: search.status,
        ids: search.ids,
        limit,
        offset,
        sortBy: search.sort_by ?? "created_at",
        sortOrder: search.sort_order ?? "desc",
      };
      const select =
        search.select === undefined ? undefined : new Set(search.select as readonly ThreadField[]);
      if (part !== undefined && Object.keys(part).length > 0) {
        const { found, total } = await pageByValues(rowSearch, part);
        return pageOf(
          found.map(([row, values]) => recordOf(row, values, select, paths)),
          total,
          offset,
        );
      }
      const { rows, total } = await searcher.page(rowSearch);
      const needsValues =
        select === undefined ||
        select.has("values") ||
        (paths?.some(({ root }) => root === "values") ?? false);
      const values = needsValues ? await valuesOf(rows) : new Map<string, string>();
      const json = rows.map((row) => recordOf(row, values.get(row.thread_id) ?? null, select, paths));
      return pageOf(json, total, offset);
    },

    async count({ values: part, ...filter }: ThreadFilter): Promise<number> {
      if (part === undefined || Object.keys(part).length === 0) return await searcher.count(filter);
      const all: RowSearch = { ...filter, limit: 0, offset: 0, sortBy: "thread_id", sortOrder: "asc" };
      return (await pageByValues(all, part)).total;
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
