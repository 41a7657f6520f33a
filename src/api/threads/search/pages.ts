import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { Visibility } from "../../../access/visibility.ts";
import { PAGE_BYTES_AT_MOST } from "../../../platform/database/bounded-reads.ts";
import { assertOnePlace } from "../../../platform/domain/cursors.ts";
import { invalid } from "../../../platform/domain/errors.ts";
import { createYieldPoint } from "../../../platform/lib/time-slicer.ts";
import { writeRecord, type ThreadRecordRow } from "../record.ts";
import type { ThreadField, ThreadFilter, ThreadSearch } from "../schemas.ts";
import { findByValues, type ValueFinderOptions } from "./by-values.ts";
import { cursorBehind, type Placed, type RowOrder, type RowPage } from "./search.ts";

/** The limit in the published contract. */
const PATHS_AT_MOST = 10;
const STEPS_AT_MOST = 50;

const EXTRACTABLE = ["values", "metadata", "config", "interrupts"] as const;

interface ExtractPath {
  alias: string;
  root: (typeof EXTRACTABLE)[number];
  /** Negative positions count from the end. */
  steps: (string | number)[];
}

/** `.key` or `[3]`, `[-1]`, `["any key"]`. */
const STEP = /\.([^.[\]]+)|\[(-?\d{1,9})\]|\["([^"\\]*)"\]/y;

const parsePath = ([alias, path]: [alias: string, path: string]): ExtractPath => {
  const refuse = (why: string) => invalid(`'extract.${alias}': the path '${path}' ${why}.`);
  const root = EXTRACTABLE.find((name) => path.startsWith(name) && /^($|[.[])/.test(path.slice(name.length)));
  if (root === undefined) throw refuse("must start with values, metadata, config or interrupts");
  const steps: (string | number)[] = [];
  STEP.lastIndex = root.length;
  while (STEP.lastIndex < path.length) {
    const match = STEP.exec(path);
    if (match === null) throw refuse("can't be read; write keys as .key and positions as [0] or [-1]");
    const [, key, position, quoted = ""] = match;
    steps.push(position === undefined ? (key ?? quoted) : Number(position));
    if (steps.length > STEPS_AT_MOST) throw refuse(`has more than ${STEPS_AT_MOST} steps`);
  }
  return { alias, root, steps };
};

/** Throws `invalid` with the alias of an invalid path. */
const parseExtract = (extract: Record<string, string>): ExtractPath[] => {
  const entries = Object.entries(extract);
  if (entries.length > PATHS_AT_MOST) throw invalid(`'extract': at most ${PATHS_AT_MOST} paths are allowed.`);
  return entries.map(parsePath);
};

const extractFrom = (value: unknown, steps: readonly (string | number)[]): unknown => {
  let current = value;
  for (const step of steps) {
    if (Array.isArray(current)) {
      if (typeof step !== "number") return null;
      current = (current as unknown[]).at(step);
    } else if (typeof current === "object" && current !== null) {
      const key = String(step);
      current = Object.hasOwn(current, key) ? (current as Record<string, unknown>)[key] : undefined;
    } else return null;
  }
  return current ?? null;
};

const extracted = (row: ThreadRecordRow, values: string | null, paths: readonly ExtractPath[]): string => {
  const record = JSON.parse(row.record) as Record<string, unknown>;
  if (paths.some(({ root }) => root === "values")) record.values = JSON.parse(values ?? "null");
  return JSON.stringify(
    Object.fromEntries(paths.map(({ alias, root, steps }) => [alias, extractFrom(record[root], steps)])),
  );
};

export interface ThreadPage {
  /** JSON. */
  text: string;
  /** Undefined if too many match to count, or behind a cursor. */
  total: number | undefined;
  /** The next offset; undefined on the last page and behind a cursor. */
  next: number | undefined;
  /** Undefined on the last page, and in the order by status. */
  cursor: string | undefined;
}

const isNarrowed = (part: ThreadFilter["values"]): part is NonNullable<typeof part> =>
  part !== undefined && Object.keys(part).length > 0;

export const createThreadPages = (options: ValueFinderOptions & { authorize: Authorize }) => {
  const { authorize, searcher, slicer, readRoom, valuesOf } = options;

  const maySearch = async (
    caller: Caller,
    { ids, status, metadata, values, limit, offset }: Partial<ThreadSearch>,
  ): Promise<Visibility<"threads">> =>
    await authorize(caller, "threads", "search", { ids, status, metadata, values, limit, offset });

  /** As many as a page has room for. */
  const recordsOf = async (
    caller: Caller,
    visibility: Visibility<"threads">,
    rows: readonly ThreadRecordRow[],
    search: ThreadSearch,
    signal: AbortSignal | undefined,
  ): Promise<string[]> => {
    const paths = search.extract && parseExtract(search.extract);
    const select = search.select && new Set(search.select as readonly ThreadField[]);
    const needsValues =
      select?.has("values") !== false || (paths?.some(({ root }) => root === "values") ?? false);
    const yieldPoint = createYieldPoint(slicer, signal);
    const leave = needsValues ? await readRoom.enter(caller, signal) : undefined;
    const values = needsValues ? valuesOf(visibility, rows) : undefined;
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
        const record = writeRecord(row, {
          values: text,
          select,
          extracted: paths && extracted(row, text, paths),
        });
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
    async page(caller: Caller, search: ThreadSearch, signal?: AbortSignal): Promise<ThreadPage> {
      const visibility = await maySearch(caller, search);
      const { limit, offset, values: part, metadata, status, ids, cursor } = search;
      assertOnePlace(search);
      const order: RowOrder = {
        sortBy: search.sort_by ?? "created_at",
        sortOrder: search.sort_order ?? "desc",
      };
      const wanted = { metadata, status, ids, ...order, cursor };
      let found: RowPage;
      /** The page's threads; some may be deleted by now. */
      let places: readonly Placed[] = [];
      if (isNarrowed(part)) {
        const all = await findByValues(options, visibility, wanted, part, { signal, caller });
        places = all.slice(offset, offset + limit);
        const named = { ...order, ids: places.map(({ thread_id }) => thread_id), limit, offset: 0 };
        const { rows } = await searcher.page(visibility, named, signal);
        // The places of the search: a thread that changed since then has another.
        const at = new Map(places.map(({ thread_id }, index) => [thread_id, index]));
        const ordered = rows
          .map((row) => ({ ...row, place: places[at.get(row.thread_id)!]!.place }))
          .sort((a, b) => at.get(a.thread_id)! - at.get(b.thread_id)!);
        found = { rows: ordered, total: all.length, isLast: offset + rows.length >= all.length };
      } else found = await searcher.page(visibility, { ...wanted, limit, offset }, signal);
      const { rows, total, isLast } = found;
      const records = await recordsOf(caller, visibility, rows, search, signal);
      const hasMore = records.length < rows.length || !isLast;
      // All rows of a search by values may be deleted by now, while later threads remain.
      const place = rows[records.length - 1] ?? places.at(-1);
      return {
        text: `[${records.join(",")}]`,
        total: cursor === undefined ? total : undefined,
        next: hasMore && records.length > 0 && cursor === undefined ? offset + records.length : undefined,
        cursor: hasMore && place !== undefined ? cursorBehind(order, place) : undefined,
      };
    },

    async count(caller: Caller, filter: ThreadFilter, signal?: AbortSignal): Promise<number> {
      const visibility = await maySearch(caller, filter);
      const { values: part, ...rows } = filter;
      if (!isNarrowed(part)) return await searcher.count(visibility, rows, signal);
      const inAnyOrder = { ...rows, sortBy: "thread_id", sortOrder: "asc" } as const;
      return (await findByValues(options, visibility, inAnyOrder, part, { signal, caller })).length;
    },
  };
};
