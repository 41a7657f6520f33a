import type { Visibility } from "../../../access/visibility.ts";
import { roomyPage, type PageColumns, type PageWeight } from "../../../platform/database/bounded-reads.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { RunRow, RunStatus } from "../../../platform/database/tables.ts";
import {
  assertOnePlace,
  ID,
  MICROSECONDS,
  microsecondsOf,
  readCursor,
  timeOf,
  writeCursor,
} from "../../../platform/domain/cursors.ts";
import { ThreadloomError } from "../../../platform/domain/errors.ts";
import { openRuns, SHOWN_COLUMNS } from "../../../engine/queue/columns.ts";
import { runVisible } from "../../../engine/queue/run-visible.ts";
import type { RunSearch } from "../schemas.ts";

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

/** A larger page ends early. */
const SUMMARIES_BYTES_AT_MOST = 4 * 1024 * 1024;
const SUMMARY_WEIGHT: PageWeight = { columns: ["metadata", "error"], bytesAtMost: SUMMARIES_BYTES_AT_MOST };
/** `kwargs` is text, whose length is known without reading it. */
const WEIGHT: PageWeight = {
  columns: ["metadata", "error", "config", "context"],
  octets: "octet_length(kwargs::text)",
  sent: `page.*, ${microsecondsOf("created_at")} as created_us`,
};
const RUNS_OF_THREAD = "runs of a thread";
const runsBy = (order: "asc" | "desc"): string => `runs ${order}`;
/** A count reads every match, possibly millions. */
const COUNTED_AT_MOST = 10_000;
/**
 * A run's id has the time of its process, `created_at` that of the database. Their clocks differ, and the database may
 * have been away between.
 */
const CLOCKS_DIFFER_AT_MOST_MS = 600_000;

const COLUMNS = `run_id, thread_id, assistant_id, graph_id, status, metadata, multitask_strategy, error, cancel_reason,
  attempt, lost_attempts, available_at, started_at, created_at, updated_at`;

/** The smallest or largest UUIDv7 of a time. */
const idAt = (time: number, rest: "0" | "f"): string => {
  const hex = Math.max(0, time).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-${rest.repeat(4)}-${rest.repeat(4)}-${rest.repeat(12)}`;
};

const conditions = (
  { encryption }: Database,
  visibility: Visibility<"threads">,
  search: RunSearch,
): { where: string; values: unknown[] } => {
  const clauses: string[] = [];
  const values: unknown[] = [];
  const add = (clause: string, value: unknown): void => {
    values.push(value);
    clauses.push(clause.replace("?", `$${values.length}`));
  };
  // A literal, because the planner can't match a parameter with a partial index.
  if (search.status !== undefined) clauses.push(`status = '${search.status}'`);
  if (search.run_id !== undefined) add("run_id = ?::uuid", search.run_id);
  if (search.graph_id !== undefined) add("graph_id = ?", search.graph_id);
  if (search.assistant_id !== undefined) add("assistant_id = ?::uuid", search.assistant_id);
  if (search.thread_id !== undefined) add("thread_id = ?::uuid", search.thread_id);
  encryption.assertSearchable(search.metadata);
  if (search.metadata !== undefined) add("metadata @> ?::jsonb", JSON.stringify(search.metadata));
  if (search.created_after !== undefined) {
    const from = search.created_after;
    add("run_id >= ?::uuid", idAt(from.getTime() - CLOCKS_DIFFER_AT_MOST_MS, "0"));
    // Whole milliseconds, as in answers, so that a shown time includes its run.
    add("created_at >= ?::timestamptz", from.toISOString());
  }
  if (search.created_before !== undefined) {
    const until = search.created_before;
    add("run_id <= ?::uuid", idAt(until.getTime() + CLOCKS_DIFFER_AT_MOST_MS, "f"));
    add("created_at < ?::timestamptz", until.toISOString());
  }
  clauses.push(runVisible(visibility, values));
  return { where: `where ${clauses.join(" and ")}`, values };
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
 * The ids are in the order of creation (UUIDv7); an index for another order would cost each run three entries. Indexes:
 * runs_pkey, runs_failed, runs_pending_of_thread, runs_by_thread. A search for rare metadata ends with the time of a
 * bounded read.
 */
export const createRunSearcher = (database: Database) => {
  /** Without a count the page is still answered. */
  const count = async (
    where: string,
    values: readonly unknown[],
    signal: AbortSignal | undefined,
  ): Promise<number | undefined> => {
    try {
      const [counted] = await database.boundedRead<{ total: string }>(
        `select count(*) as total from (select from threadloom.runs r ${where} limit $${values.length + 1}::int) matching`,
        [...values, COUNTED_AT_MOST + 1],
        signal,
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
      const values: unknown[] = [threadId, status ?? null, limit + 1, offset];
      const visible = runVisible(visibility, values);
      let behind = "";
      if (cursor !== undefined) {
        const [time = "", id = ""] = readCursor(cursor, RUNS_OF_THREAD, [MICROSECONDS, ID]);
        const after = values.push(timeOf(time), id);
        behind = `and (r.created_at, r.run_id) < ($${after - 1}::timestamptz, $${after}::uuid)`;
      }
      const found = await database.boundedRead<RunRow & PageColumns & { created_us: string }>(
        roomyPage(
          `select ${SHOWN_COLUMNS} from threadloom.runs r where r.thread_id = $1 and ($2::text is null or r.status = $2)
         and ${visible} ${behind} order by r.created_at desc, r.run_id desc limit $3 offset $4`,
          WEIGHT,
        ),
        values,
        signal,
      );
      const rows = openRuns(database, found.slice(0, limit));
      const next = nextOf(rows, found, options, (row) =>
        writeCursor(RUNS_OF_THREAD, [row.created_us, row.run_id]),
      );
      return { rows, ...next };
    },

    /** Rejects like `boundedRead`. */
    async page(visibility: Visibility<"threads">, search: RunSearch, signal?: AbortSignal): Promise<RunPage> {
      assertOnePlace(search);
      const { where, values } = conditions(database, visibility, search);
      const { limit, offset, cursor } = search;
      const order = search.sort_order ?? "desc";
      const asked = [...values];
      let behind = "";
      if (cursor !== undefined) {
        const [id] = readCursor(cursor, runsBy(order), [ID]);
        behind = `and run_id ${order === "asc" ? ">" : "<"} $${asked.push(id)}::uuid`;
      }
      const found = await database.boundedRead<RunSummaryRow & PageColumns>(
        roomyPage(
          `select ${COLUMNS} from threadloom.runs r ${where} ${behind} order by run_id ${order}
         limit $${asked.length + 1}::int offset $${asked.length + 2}::int`,
          SUMMARY_WEIGHT,
        ),
        [...asked, limit + 1, offset],
        signal,
      );
      const rows = openRuns(database, found.slice(0, limit));
      const next = nextOf(rows, found, search, ({ run_id }) => writeCursor(runsBy(order), [run_id]));
      if (cursor !== undefined) return { rows, total: undefined, ...next };
      if (next.next === undefined && (rows.length > 0 || offset === 0)) {
        return { rows, total: offset + rows.length, ...next };
      }
      return { rows, total: await count(where, values, signal), ...next };
    },
  };
};

export type RunSearcher = ReturnType<typeof createRunSearcher>;
