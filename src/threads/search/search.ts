import type { Visibility } from "../../access/visibility.ts";
import { roomyPage, type PageColumns, type PageWeight } from "../../database/bounded-reads.ts";
import type { Database } from "../../database/database.ts";
import type { ThreadStatus } from "../../database/tables.ts";
import { assertSearchable } from "../../encryption/json.ts";
import {
  CANDIDATE_COLUMNS,
  openRecords,
  recordColumns,
  storedColumns,
  type LongParts,
  type ThreadRecordRow,
} from "../record.ts";
import type { ThreadFilter, ThreadSearch } from "../schemas.ts";

/** Filters that the table of threads can answer by itself. */
export type RowFilter = Pick<ThreadFilter, "metadata" | "status"> & Partial<Pick<ThreadFilter, "ids">>;

export type SortKey = NonNullable<ThreadSearch["sort_by"]>;

export interface RowSearch extends RowFilter {
  /** What of the records is answered; the rest of them is neither weighed nor read. */
  parts: LongParts;
  limit: number;
  offset: number;
  sortBy: SortKey;
  sortOrder: "asc" | "desc";
}

export interface RowPage {
  /** Those that a page has room for, see `roomyPage`: the others were not read. */
  rows: ThreadRecordRow[];
  /** How many threads match, on all pages. */
  total: number;
}

/** What a search by values has to know of a thread to look into it. */
export type Candidate = Pick<ThreadRecordRow, "thread_id" | "graph_id" | "untouched">;

export type RowOrder = Pick<RowSearch, "sortBy" | "sortOrder">;

/**
 * Threads that are hidden are neither answered nor counted.
 *
 * All of these are bounded reads (see database/bounded-reads.ts): they reject with `invalid` if they take too long,
 * and wait no longer when `signal` aborts.
 */
export interface ThreadSearcher {
  page(visibility: Visibility<"threads">, search: RowSearch, signal?: AbortSignal): Promise<RowPage>;
  count(visibility: Visibility<"threads">, filter: RowFilter, signal?: AbortSignal): Promise<number>;
  /**
   * All threads in this order, without their records: one statement for all that will be looked into. Undefined if they
   * are more than `limit`; then they are only counted, up to there.
   */
  candidates(
    visibility: Visibility<"threads">,
    filter: RowFilter & RowOrder,
    limit: number,
    signal?: AbortSignal,
  ): Promise<Candidate[] | undefined>;
  /**
   * The records of these threads, in the order of the ids, as far as a page has room for them; those that are gone are
   * missing.
   */
  records(
    visibility: Visibility<"threads">,
    ids: readonly string[],
    parts: LongParts,
    signal?: AbortSignal,
  ): Promise<ThreadRecordRow[]>;
}

type PageRow = ThreadRecordRow & PageColumns;
type CountedRow = PageRow & { total: string };

/** A page of records. `more`: SQL for further columns. */
const pageOf = (parts: LongParts, more = ""): PageWeight => {
  const [first, second, third, fourth] = parts.read;
  return { columns: [first, second, third, fourth], sent: `${more}${recordColumns(parts)}` };
};

/**
 * `status` has no index, which every run would have to change. What each of the rarer statuses implies has one:
 * runs_pending_of_thread, runs_one_running_per_thread and threads_by_resting_status.
 */
const HOW_TO_FIND: Partial<Record<ThreadStatus, string>> = {
  busy: `thread_id in (select thread_id from threadloom.runs where status = 'pending'
    union all select thread_id from threadloom.runs where status = 'running')`,
  interrupted: "resting_status = 'interrupted' and resting_status <> 'idle'",
  error: "resting_status = 'error' and resting_status <> 'idle'",
};

/**
 * Parameters stand in a sub-select where the planner would guess otherwise with each value: it then keeps one plan
 * for the prepared statement instead of planning anew each time, which took longer (0.2 ms) than the
 * search itself (0.13 ms for 50 of 5,000 threads).
 *
 * The text of the statements depends only on which filters there are, how to sort, and which of the four long columns
 * are answered: some thousand variants at most, of which a connection prepares those that are used. Nothing that a
 * client sent becomes part of it. They are raw because they are built of such pieces.
 */
const conditions = (
  { cipher }: Database,
  visibility: Visibility<"threads">,
  filter: RowFilter,
): { where: string; values: unknown[] } => {
  const clauses: string[] = [];
  const values: unknown[] = [];
  const add = (clause: (parameter: string) => string, value: unknown): void => {
    values.push(value);
    clauses.push(clause(`$${values.length}`));
  };
  // Whole filter in one jsonb: containment is answered by threads_by_metadata (gin, jsonb_path_ops).
  if (filter.metadata !== undefined && Object.keys(filter.metadata).length > 0) {
    assertSearchable(cipher, filter.metadata);
    add((parameter) => `metadata @> (select ${parameter}::jsonb)`, JSON.stringify(filter.metadata));
  }
  if (filter.status !== undefined) {
    add((parameter) => `status = ${parameter}`, filter.status);
    const found = HOW_TO_FIND[filter.status];
    if (found !== undefined) clauses.push(found);
  }
  if (filter.ids !== undefined) add((parameter) => `thread_id = any(${parameter}::uuid[])`, filter.ids);
  if (!visibility.hidesNothing) clauses.push(visibility.condition("metadata", values));
  return { where: clauses.length === 0 ? "" : `where ${clauses.join(" and ")}`, values };
};

const recordsOf = (parts: LongParts, visible: string): string =>
  roomyPage(
    `select record.* from unnest($1::uuid[]) with ordinality as wanted (id, place)
     cross join lateral (
       select ${storedColumns(parts)} from threadloom.threads where thread_id = wanted.id and ${visible}) record
     order by wanted.place`,
    pageOf(parts),
  );

const limitAndOffset = (parametersBefore: number): string =>
  `limit (select $${parametersBefore + 1}::int) offset (select $${parametersBefore + 2}::int)`;

/** A condition of visibility is taken for one on metadata: few threads of many are one caller's. */
const isSelective = (visibility: Visibility<"threads">, filter: RowFilter): boolean =>
  !visibility.hidesNothing ||
  filter.ids !== undefined ||
  (filter.metadata !== undefined && Object.keys(filter.metadata).length > 0);

/** The indexed columns that give the order roughly: ten minutes are sorted at a time. */
const ROUGHLY: Partial<Record<SortKey, string>> = {
  updated_at: "updated_bin",
  state_updated_at: "state_updated_bin",
};

const sortKeys = (sortBy: SortKey): string[] => {
  if (sortBy === "thread_id") return ["thread_id"];
  const rough = ROUGHLY[sortBy];
  return rough === undefined ? [sortBy, "thread_id"] : [rough, sortBy, "thread_id"];
};

const orderBy = ({ sortBy, sortOrder }: RowOrder): string =>
  sortKeys(sortBy)
    .map((key) => `${key} ${sortOrder}`)
    .join(", ");

export const createThreadSearcher = (database: Database): ThreadSearcher => {
  const count: ThreadSearcher["count"] = async (visibility, filter, signal) => {
    const { where, values } = conditions(database, visibility, filter);
    const rows = await database.boundedRead<{ total: string }>(
      `select count(*) as total from threadloom.threads ${where}`,
      values,
      signal,
    );
    return Number(rows[0]?.total ?? 0);
  };

  /**
   * With a metadata filter or ids: one scan of what matches gives both the page and the total (`count(*) over ()`),
   * over ids and the sort key only; the page's rows are then fetched by primary key.
   */
  const selectivePage: ThreadSearcher["page"] = async (visibility, search, signal) => {
    const { where, values } = conditions(database, visibility, search);
    const order = orderBy(search);
    const keys = sortKeys(search.sortBy).join(", ");
    const found = await database.boundedRead<CountedRow>(
      roomyPage(
        `select page.total, record.*
           from (select ${keys}, count(*) over () as total from threadloom.threads ${where}
                  order by ${order} ${limitAndOffset(values.length)}) page
          cross join lateral (
            select ${storedColumns(search.parts)} from threadloom.threads where thread_id = page.thread_id) record
          order by ${order.replaceAll(/(\w+) (asc|desc)/g, "page.$1 $2")}`,
        pageOf(search.parts, "total, "),
      ),
      [...values, search.limit, search.offset],
      signal,
    );
    const rows = openRecords(database, found);
    const first = found[0];
    if (first !== undefined) return { rows, total: Number(first.total) };
    return { rows, total: search.offset === 0 ? 0 : await count(visibility, search, signal) };
  };

  /**
   * Without one: the page comes in order from the index of its sort key (threads_by_creation, _by_update,
   * _by_state_update), and one row more than asked tells whether the page is the last, so that the
   * total is counted (an index-only scan) only if it isn't.
   */
  const orderedPage: ThreadSearcher["page"] = async (visibility, search, signal) => {
    const { where, values } = conditions(database, visibility, search);
    const read = await database.boundedRead<PageRow>(
      roomyPage(
        `select ${storedColumns(search.parts)} from threadloom.threads ${where}
          order by ${orderBy(search)} ${limitAndOffset(values.length)}`,
        pageOf(search.parts),
      ),
      [...values, search.limit + 1, search.offset],
      signal,
    );
    const rows = openRecords(database, read);
    const found = Number(rows[0]?.page_rows ?? 0);
    if (found > Math.min(search.limit, rows.length)) {
      return { rows: rows.slice(0, search.limit), total: await count(visibility, search, signal) };
    }
    if (rows.length > 0 || search.offset === 0) return { rows, total: search.offset + rows.length };
    return { rows, total: await count(visibility, search, signal) };
  };

  return {
    page: (visibility, search, signal) =>
      isSelective(visibility, search)
        ? selectivePage(visibility, search, signal)
        : orderedPage(visibility, search, signal),
    count,
    async candidates(visibility, search, limit, signal) {
      const { where, values } = conditions(database, visibility, search);
      const most = `(select $${values.length + 1}::int)`;
      const rows = await database.boundedRead<Candidate | Record<keyof Candidate, null>>(
        `select candidate.*
          from (select count(*) as count from (
            select from threadloom.threads ${where} limit ${most} + 1) counted) counted
          left join lateral (
            select ${CANDIDATE_COLUMNS} from threadloom.threads ${where} order by ${orderBy(search)}
          ) candidate on counted.count <= ${most}
         where counted.count > ${most} or candidate.thread_id is not null`,
        [...values, limit],
        signal,
      );
      // One row of nulls stands for more than there may be.
      return rows.some((row) => row.thread_id === null) ? undefined : (rows as Candidate[]);
    },
    async records(visibility, ids, parts, signal) {
      const values: unknown[] = [ids];
      const text = recordsOf(parts, visibility.condition("metadata", values));
      return openRecords(database, await database.boundedRead<ThreadRecordRow>(text, values, signal));
    },
  };
};
