import type { Visibility } from "../../../access/visibility.ts";
import { PAGE_BYTES_AT_MOST } from "../../../platform/database/bounded-reads.ts";
import { createYieldPoint } from "../../../platform/lib/time-slicer.ts";
import { createValueFinder, type PageReadOptions, type ValueFinderOptions } from "./by-values.ts";
import { assertOnePlace } from "../../../platform/domain/cursors.ts";
import { cursorBehind, placeOf, type RowOrder } from "./order.ts";
import type { Placed } from "./search.ts";
import { extractFrom, parseExtract, type ExtractPath } from "./extract.ts";
import { LONG_COLUMNS, writeRecord, type LongParts, type ThreadRecordRow } from "../record.ts";
import type { ThreadField, ThreadFilter, ThreadSearch } from "../schemas.ts";

export interface ThreadPage {
  /** JSON. */
  text: string;
  /** Undefined if too many match to count, or behind a cursor. */
  total: number | undefined;
  /** The next offset; undefined on the last page and behind a cursor. */
  next: number | undefined;
  /** Undefined on the last page. */
  cursor: string | undefined;
}

export interface ThreadPages {
  search(
    visibility: Visibility<"threads">,
    search: ThreadSearch,
    options?: PageReadOptions,
  ): Promise<ThreadPage>;
  count(visibility: Visibility<"threads">, filter: ThreadFilter, options?: PageReadOptions): Promise<number>;
}

export const createThreadPages = (options: ValueFinderOptions): ThreadPages => {
  const { searcher, slicer, readRoom, valuesOf } = options;
  const finder = createValueFinder(options);

  const recordsOf = async (
    visibility: Visibility<"threads">,
    rows: readonly ThreadRecordRow[],
    { select, extract, needsValues }: Fields,
    { signal, caller }: PageReadOptions,
  ): Promise<string[]> => {
    const yieldPoint = createYieldPoint(slicer, signal);
    const leave = needsValues ? await readRoom.enter(caller, signal) : undefined;
    const values = needsValues ? valuesOf(visibility, rows, {}) : undefined;
    const records: string[] = [];
    let bytes = 0;
    try {
      let known = await values?.next();
      for (const row of rows) {
        await yieldPoint();
        known ??= await values?.next();
        let text: string | null = null;
        if (known !== undefined && known.done !== true && known.value[0] === row.thread_id) {
          text = known.value[1];
          known = undefined;
        }
        const record = recordOf(row, text, select, extract);
        bytes += Buffer.byteLength(record);
        records.push(record);
        if (bytes >= PAGE_BYTES_AT_MOST) break;
      }
    } finally {
      await values?.return();
      leave?.();
    }
    return records;
  };

  return {
    async search(visibility, search, options = {}) {
      const { signal } = options;
      const { limit, offset, values: part, metadata, status, ids, cursor } = search;
      assertOnePlace(search);
      const fields = fieldsOf(search);
      const order: RowOrder = {
        sortBy: search.sort_by ?? "created_at",
        sortOrder: search.sort_order ?? "desc",
      };
      const behind = cursor === undefined ? undefined : placeOf(order, cursor);
      const wanted = { metadata, status, ids, ...order, behind };
      let rows: readonly ThreadRecordRow[];
      /** As `rows`, but some may be deleted by now. */
      let places: readonly Placed[];
      let total: number | undefined;
      let isLast: boolean;
      if (part !== undefined && Object.keys(part).length > 0) {
        const found = await finder.find(visibility, wanted, part, options);
        places = found.slice(offset, offset + limit);
        const ids = places.map(({ thread_id }) => thread_id);
        rows = await searcher.records(visibility, ids, fields.parts, signal);
        total = found.length;
        isLast = offset + rows.length >= total;
      } else {
        const page = { ...wanted, parts: fields.parts, limit, offset };
        const found = await searcher.page(visibility, page, signal);
        ({ rows, places, total, isLast } = found);
      }
      const records = await recordsOf(visibility, rows, fields, options);
      const hasMore = records.length < rows.length || !isLast;
      const last = rows[records.length - 1]?.thread_id;
      // All rows of a search by values may be deleted by now, while later threads remain.
      const place = last === undefined ? places.at(-1) : places.find(({ thread_id }) => thread_id === last);
      return {
        text: `[${records.join(",")}]`,
        total: behind === undefined ? total : undefined,
        next: hasMore && records.length > 0 && behind === undefined ? offset + records.length : undefined,
        cursor: hasMore && place !== undefined ? cursorBehind(order, place) : undefined,
      };
    },

    async count(visibility, { values: part, ...filter }, options = {}) {
      if (part === undefined || Object.keys(part).length === 0) {
        return await searcher.count(visibility, filter, options.signal);
      }
      const inAnyOrder = { ...filter, sortBy: "thread_id", sortOrder: "asc" } as const;
      return (await finder.find(visibility, inAnyOrder, part, options)).length;
    },
  };
};

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
  // `metadata` names the graph, which decides how values are read.
  const read = LONG_COLUMNS.filter(
    (column) => shown.includes(column) || (column === "metadata" && needsValues),
  );
  return { select, extract, needsValues, parts: { shown, read } };
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
