import { sql, type RawBuilder, type SqlBool } from "kysely";
import type { Visibility } from "../../access/visibility.ts";
import type { PageColumns, PageWeight } from "../../platform/database/bounded-reads.ts";
import type { Database } from "../../platform/database/database.ts";
import { composedRead, sqlOf } from "../../platform/database/queries.ts";
import type { RunRow, RunStatus } from "../../platform/database/tables.ts";
import {
  assertOnePlace,
  ID,
  MICROSECONDS,
  microsecondsOf,
  readCursor,
  timeOf,
  writeCursor,
} from "../../platform/domain/cursors.ts";
import { ThreadloomError } from "../../platform/domain/errors.ts";
import { openRuns, SHOWN_COLUMNS } from "../../engine/queue/columns.ts";
import { withWholeInputs } from "../../engine/queue/large-inputs.ts";
import { againIfFreed } from "../../state/checkpoints/texts.ts";
import { runVisible } from "../../engine/queue/run-visible.ts";
import type { RunSearch } from "./schemas.ts";

/** Omits the inputs, which may be megabytes each. */
export type RunSummaryRow = Omit<RunRow, "config" | "context" | "kwargs">;

export interface RunListOptions {
  limit: number;
  offset: number;
  cursor?: string | undefined;
  status?: RunStatus;
}

/** Empty on the last page. */
export interface NextPage {
  next: number | undefined;
  cursor: string | undefined;
}

export interface RunPage extends NextPage {
  rows: RunSummaryRow[];
  /** Undefined if too many match, if counting takes too long, and behind a cursor. */
  total: number | undefined;
}

const SUMMARIES_BYTES_AT_MOST = 4 * 1024 * 1024;
const SUMMARY_WEIGHT: PageWeight = { columns: ["metadata", "error"], bytesAtMost: SUMMARIES_BYTES_AT_MOST };
/** `kwargs` is text, whose length is known without reading it. */
const WEIGHT: PageWeight = {
  columns: ["metadata", "error", "config", "context"],
  octets: "octet_length(kwargs::text) + coalesce(string_bytes, 0)",
  sent: `page.*, ${microsecondsOf("created_at")} as created_us`,
};
/** `string_bytes`: of the strings to which `kwargs` refers. */
interface ListedColumns {
  created_us: string;
  string_bytes: number | null;
}
const RUNS_OF_THREAD = "runs of a thread";
const runsBy = (order: "asc" | "desc"): string => `runs ${order}`;
/** A count reads every match, possibly millions. */
const COUNTED_AT_MOST = 10_000;
const COLUMNS = `run_id, thread_id, assistant_id, graph_id, status, metadata, multitask_strategy, error, cancel_reason,
  attempt, lost_attempts, available_at, started_at, created_at, updated_at`;

/**
 * A run's id has the process's time, `created_at` the database's. The clocks differ, and the database may be away in
 * between.
 */
const CLOCKS_DIFFER_AT_MOST_MS = 600_000;

/** The smallest or largest UUIDv7 of a time. */
const idAt = (time: number, rest: "0" | "f"): string => {
  const hex = Math.max(0, time).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-${rest.repeat(4)}-${rest.repeat(4)}-${rest.repeat(12)}`;
};

/** For runs as `r`. Whole milliseconds, as in answers, so that a shown time includes its run. Index: runs_pkey. */
export const createdSince = (time: Date): RawBuilder<SqlBool> =>
  sql`r.run_id >= ${idAt(time.getTime() - CLOCKS_DIFFER_AT_MOST_MS, "0")}::uuid
    and r.created_at >= ${time.toISOString()}::timestamptz`;

/** See `createdSince`. */
export const createdBefore = (time: Date): RawBuilder<SqlBool> =>
  sql`r.run_id <= ${idAt(time.getTime() + CLOCKS_DIFFER_AT_MOST_MS, "f")}::uuid
    and r.created_at < ${time.toISOString()}::timestamptz`;

const matching = (
  { encryption }: Database,
  visibility: Visibility<"threads">,
  search: RunSearch,
): RawBuilder<SqlBool> => {
  const conditions = [sqlOf<SqlBool>(runVisible(visibility))];
  // A literal, because the planner can't match a parameter with a partial index.
  if (search.status !== undefined) conditions.push(sql`status = ${sql.lit(search.status)}`);
  if (search.run_id !== undefined) conditions.push(sql`run_id = ${search.run_id}::uuid`);
  if (search.graph_id !== undefined) conditions.push(sql`graph_id = ${search.graph_id}`);
  if (search.assistant_id !== undefined) conditions.push(sql`assistant_id = ${search.assistant_id}::uuid`);
  if (search.thread_id !== undefined) conditions.push(sql`thread_id = ${search.thread_id}::uuid`);
  encryption.assertSearchable(search.metadata);
  if (search.metadata !== undefined)
    conditions.push(sql`metadata @> ${JSON.stringify(search.metadata)}::jsonb`);
  if (search.created_after !== undefined) conditions.push(createdSince(search.created_after));
  if (search.created_before !== undefined) conditions.push(createdBefore(search.created_before));
  return sql.join(conditions, sql` and `);
};

/** `found` has one row more than asked for, if there was room. */
const nextOf = <Row extends PageColumns>(
  rows: readonly Row[],
  found: readonly Row[],
  { offset, cursor }: { offset: number; cursor?: string | undefined },
  cursorBehind: (row: Row) => string,
): NextPage => {
  const last = rows.at(-1);
  if (last === undefined || rows.length >= Number(found[0]?.page_rows ?? 0))
    return { next: undefined, cursor: undefined };
  return { next: cursor === undefined ? offset + rows.length : undefined, cursor: cursorBehind(last) };
};

/**
 * Ids (UUIDv7) are in the order of creation; an index for another order would cost each run three entries. Indexes:
 * runs_pkey, runs_failed, runs_pending_of_thread, runs_by_thread.
 */
export const createRunSearcher = (database: Database) => {
  /** Undefined if too many match or the read takes too long: the page is still answered. */
  const count = async (
    where: RawBuilder<SqlBool>,
    signal: AbortSignal | undefined,
  ): Promise<number | undefined> => {
    try {
      const [counted] = await composedRead<{ total: string }>(
        database.boundedRead,
        sql`select count(*) as total from (
          select 1 from threadloom.runs r where ${where} limit ${COUNTED_AT_MOST + 1}::int) matching`,
        { signal },
      );
      const total = Number(counted?.total ?? 0);
      return total > COUNTED_AT_MOST ? undefined : total;
    } catch (error) {
      if (error instanceof ThreadloomError && error.kind === "invalid") return undefined;
      throw error;
    }
  };

  return {
    /** A page ends early at 16 MiB. Rejects like `boundedRead`. Index: runs_by_thread. */
    async list(
      visibility: Visibility<"threads">,
      threadId: string,
      options: RunListOptions,
      signal?: AbortSignal,
    ): Promise<{ rows: RunRow[] } & NextPage> {
      assertOnePlace(options);
      const { limit, offset, cursor, status } = options;
      const conditions = [sql`r.thread_id = ${threadId}`, sqlOf(runVisible(visibility))];
      if (status !== undefined) conditions.push(sql`r.status = ${status}`);
      if (cursor !== undefined) {
        const [time = "", id = ""] = readCursor(cursor, RUNS_OF_THREAD, [MICROSECONDS, ID]);
        conditions.push(sql`(r.created_at, r.run_id) < (${timeOf(time)}::timestamptz, ${id}::uuid)`);
      }
      return await againIfFreed(async () => {
        const found = await composedRead<RunRow & PageColumns & ListedColumns>(
          database.boundedRead,
          sql`select ${sql.raw(SHOWN_COLUMNS)}, r.string_bytes from threadloom.runs r
            where ${sql.join(conditions, sql` and `)}
            order by r.created_at desc, r.run_id desc limit ${limit + 1} offset ${offset}`,
          { signal, weight: WEIGHT },
        );
        const rows = await withWholeInputs(database, threadId, openRuns(database, found.slice(0, limit)));
        const next = nextOf(rows, found, options, (row) =>
          writeCursor(RUNS_OF_THREAD, [row.created_us, row.run_id]),
        );
        return { rows, ...next };
      });
    },

    /** Rejects like `boundedRead`. */
    async page(visibility: Visibility<"threads">, search: RunSearch, signal?: AbortSignal): Promise<RunPage> {
      assertOnePlace(search);
      const where = matching(database, visibility, search);
      const { limit, offset, cursor } = search;
      const order = search.sort_order ?? "desc";
      const behind =
        cursor === undefined
          ? sql``
          : sql`and run_id ${sql.raw(order === "asc" ? ">" : "<")} ${readCursor(cursor, runsBy(order), [ID])[0]}::uuid`;
      const found = await composedRead<RunSummaryRow & PageColumns>(
        database.boundedRead,
        sql`select ${sql.raw(COLUMNS)} from threadloom.runs r where ${where} ${behind}
          order by run_id ${sql.raw(order)} limit ${limit + 1}::int offset ${offset}::int`,
        { signal, weight: SUMMARY_WEIGHT },
      );
      const rows = openRuns(database, found.slice(0, limit));
      const next = nextOf(rows, found, search, ({ run_id }) => writeCursor(runsBy(order), [run_id]));
      if (cursor !== undefined) return { rows, total: undefined, ...next };
      if (next.next === undefined && (rows.length > 0 || offset === 0)) {
        return { rows, total: offset + rows.length, ...next };
      }
      return { rows, total: await count(where, signal), ...next };
    },
  };
};

export type RunSearcher = ReturnType<typeof createRunSearcher>;
