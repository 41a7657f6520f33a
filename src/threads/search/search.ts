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
import type { ThreadFilter } from "../schemas.ts";
import { orderBy, sortKeys, STATUSES, type RowOrder } from "./order.ts";

/** Filters that the table of threads can answer by itself. */
export type RowFilter = Pick<ThreadFilter, "metadata" | "status"> & Partial<Pick<ThreadFilter, "ids">>;

export interface RowSearch extends RowFilter, RowOrder {
  /** What of the records is answered; the rest of them is neither weighed nor read. */
  parts: LongParts;
  limit: number;
  offset: number;
}

export interface RowPage {
  /** Those that a page has room for, see `roomyPage`: the others were not read. */
  rows: ThreadRecordRow[];
  /** How many threads match, on all pages; undefined if more match than are counted for a page. */
  total: number | undefined;
  /** Whether no thread that matches comes after these rows. */
  isLast: boolean;
}

/** What a search by values has to know of a thread to look into it. */
export type Candidate = Pick<ThreadRecordRow, "thread_id" | "graph_id" | "untouched">;

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

/** Counting costs a look at every thread that matches. A page with more of them has no total, as of runs. */
const COUNTED_AT_MOST = 10_000;

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
 * Parameters stand where the planner sees their values (bounded reads are planned for them): it knows which of them are
 * rare. Behind a sub-select it read all of 200,000 threads for a page of 200 that matched.
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
    add((parameter) => `metadata @> ${parameter}::jsonb`, JSON.stringify(filter.metadata));
  }
  if (filter.status !== undefined) {
    // As a literal, one of four: statements for several statuses then have the same parameters.
    clauses.push(`status = '${filter.status}'`);
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
  `limit $${parametersBefore + 1}::int offset $${parametersBefore + 2}::int`;

/** Threads in the order of the index of the sort key (threads_by_creation, _by_update, _by_state_update, threads_pkey). */
const inOrder = (
  database: Database,
  visibility: Visibility<"threads">,
  search: RowSearch,
): { text: string; values: unknown[] } => {
  const columns = storedColumns(search.parts);
  if (search.sortBy !== "status") {
    const { where, values } = conditions(database, visibility, search);
    return {
      text: `select ${columns} from threadloom.threads ${where} order by ${orderBy(search)} ${limitAndOffset(values.length)}`,
      values,
    };
  }
  // Each status has an index of its own that gives the order within it. The values are the same for all of them.
  const statuses = STATUSES.filter((status) => search.status === undefined || search.status === status);
  const ofStatus = statuses.map((status) => ({
    status,
    ...conditions(database, visibility, { ...search, status }),
  }));
  const values = ofStatus[0]?.values ?? [];
  const parts = ofStatus.map(
    ({
      where,
    }) => `(select ${columns} from threadloom.threads ${where} order by ${orderBy({ ...search, sortBy: "created_at" })}
      limit $${values.length + 1}::int + $${values.length + 2}::int)`,
  );
  return {
    text: `select * from (${parts.join(" union all ")}) threads order by ${orderBy(search)} ${limitAndOffset(values.length)}`,
    values,
  };
};

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

  /** Undefined if more match than are counted for a page. */
  const countSome = async (
    visibility: Visibility<"threads">,
    filter: RowFilter,
    signal?: AbortSignal,
  ): Promise<number | undefined> => {
    const { where, values } = conditions(database, visibility, filter);
    const [counted] = await database.boundedRead<{ total: string }>(
      `select count(*) as total from (select from threadloom.threads ${where} limit ${COUNTED_AT_MOST + 1}) matching`,
      values,
      signal,
    );
    const total = Number(counted?.total ?? 0);
    return total > COUNTED_AT_MOST ? undefined : total;
  };

  /**
   * All threads that match, if they are no more than `COUNTED_AT_MOST`: their ids and sort keys are found by one index
   * (threads_by_metadata), then sorted. Undefined if more match: then they are found soon in the order of any index.
   */
  const pageOfFew = async (
    visibility: Visibility<"threads">,
    search: RowSearch,
    signal?: AbortSignal,
  ): Promise<RowPage | undefined> => {
    const { where, values } = conditions(database, visibility, search);
    const found = await database.boundedRead<PageRow & { total: string }>(
      roomyPage(
        `with matching as materialized (
           select ${sortKeys(search.sortBy)} from threadloom.threads ${where} limit ${COUNTED_AT_MOST + 1})
         select counted.total, record.*
           from (select count(*) as total from matching) counted
           left join lateral (
             select matching.* from matching where counted.total <= ${COUNTED_AT_MOST}
              order by ${orderBy(search, "matching")} ${limitAndOffset(values.length)}) page on true
           left join lateral (
             select ${storedColumns(search.parts)} from threadloom.threads where thread_id = page.thread_id) record on true
          order by ${orderBy(search, "page")}`,
        pageOf(search.parts, "total, "),
      ),
      [...values, search.limit, search.offset],
      signal,
    );
    const total = Number(found[0]?.total ?? 0);
    if (total > COUNTED_AT_MOST) return undefined;
    // One row without a thread says how many match where the page holds none of them.
    const rows = openRecords(
      database,
      found.filter((row) => row.thread_id !== null),
    );
    return { rows, total, isLast: search.offset + rows.length >= total };
  };

  /** One row more than asked tells whether the page is the last. If it is not, what matches is counted up to a bound. */
  const orderedPage = async (
    visibility: Visibility<"threads">,
    search: RowSearch,
    isMany: boolean,
    signal?: AbortSignal,
  ): Promise<RowPage> => {
    const { text, values } = inOrder(database, visibility, search);
    const read = await database.boundedRead<PageRow>(
      roomyPage(text, pageOf(search.parts)),
      [...values, search.limit + 1, search.offset],
      signal,
    );
    const rows = openRecords(database, read.slice(0, search.limit));
    const isLast = Number(read[0]?.page_rows ?? 0) <= rows.length;
    if (isLast && (rows.length > 0 || search.offset === 0))
      return { rows, total: search.offset + rows.length, isLast };
    const total = isMany ? undefined : await countSome(visibility, search, signal);
    return { rows, total, isLast };
  };

  return {
    async page(visibility, search, signal) {
      const isFiltered =
        !visibility.hidesNothing ||
        search.ids !== undefined ||
        (search.metadata !== undefined && Object.keys(search.metadata).length > 0);
      const few = isFiltered ? await pageOfFew(visibility, search, signal) : undefined;
      return few ?? (await orderedPage(visibility, search, isFiltered, signal));
    },
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
