import { sql, type RawBuilder, type SqlBool } from "kysely";
import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { PageColumns } from "../../platform/database/bounded-reads.ts";
import type { Database } from "../../platform/database/database.ts";
import { composedRead, sqlOf } from "../../platform/database/queries.ts";
import { statement } from "../../platform/database/statement.ts";
import {
  ID,
  MICROSECONDS,
  microsecondsOf,
  readCursor,
  timeOf,
  writeCursor,
} from "../../platform/domain/cursors.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { runVisible } from "../../engine/queue/run-visible.ts";
import { ORIGIN, TASK_ID } from "../calls/start.ts";
import { TASK_COLUMNS, taskIdOf, taskOf, type Task, type TaskRow } from "../calls/tasks.ts";

export interface TaskSearch {
  assistantId: string;
  threadId: string | undefined;
  state: Task["state"] | undefined;
  /** Only states since then. */
  since: Date | undefined;
  limit: number;
  pageToken: string | undefined;
}

/** A count reads every match, so only the first page counts; the others get it in their token. */
const COUNTED_AT_MOST = 1_000;
const COUNT = /^\d{1,4}$/;
const ORDER = "tasks";

/** Ids of runs are in the order of creation. Indexes: threads_pkey, runs_by_thread. */
const NEWEST_OF_CONTEXT = statement(
  { threadId: "uuid", visible: "fragment" },
  (sql) => `select t.turns, newest.run_id, newest.assistant_id, newest.metadata
  from threadloom.threads t left join lateral (
    select r.run_id, r.assistant_id, r.metadata from threadloom.runs r where r.thread_id = t.thread_id
    order by r.created_at desc limit 1) newest on true
  where t.thread_id = ${sql.threadId} and ${sql.visible}`,
);

interface ContextRow {
  turns: number;
  /** The next three: null in a context without runs. */
  run_id: string | null;
  assistant_id: string | null;
  metadata: JsonObject | null;
}

export interface Context {
  /** `threads.turns`; 0 without a thread. */
  turns: number;
  newest: { taskId: string; assistantId: string | null; metadata: JsonObject } | undefined;
}

/**
 * Only a run that has asked for input is continued, and only before another run is created on its thread: its
 * continuation is among the next few, as the times of runs created at once are not in order. Index: runs_by_thread.
 */
const NOT_CONTINUED = `(r.status <> 'success' or not exists (
  select from (
    select later.metadata ->> '${TASK_ID}' as task_id from threadloom.runs later
    where later.thread_id = r.thread_id and later.created_at > r.created_at
    order by later.created_at limit 10) next
  where next.task_id = coalesce(r.metadata ->> '${TASK_ID}', r.run_id::text)))`;

/** In SQL, because a filter by state must not shorten a page. */
const IN_STATE: Readonly<Record<Task["state"], string>> = {
  submitted: "status = 'pending'",
  working: "status = 'running'",
  "input-required": "status = 'success' and interrupts::text <> '{}'",
  completed: "status = 'success' and coalesce(interrupts::text, '{}') = '{}'",
  failed: "status in ('error', 'timeout')",
  cancelled: "status = 'interrupted'",
};

export const createTaskRepository = (authorize: Authorize, database: Database) => {
  const matching = (found: RawBuilder<SqlBool>, { state }: TaskSearch): RawBuilder<unknown> => sql`
    select * from (
      select ${sql.raw(TASK_COLUMNS)}, ${sql.raw(microsecondsOf("r.updated_at"))} as updated_us
      from threadloom.runs r join threadloom.threads t on t.thread_id = r.thread_id
      where r.metadata ->> ${sql.lit(ORIGIN)} = 'a2a' and ${found}
        and ${sql.raw(NOT_CONTINUED)}
    ) task where ${sql.raw(state === undefined ? "true" : IN_STATE[state])}`;

  return {
    /** A context, and the task and the message of its newest run. */
    async context(caller: Caller, threadId: string): Promise<Context> {
      const visibility = await authorize(caller, "threads", "read", { thread_id: threadId });
      const [row] = await NEWEST_OF_CONTEXT.query<ContextRow>(database, {
        threadId,
        visible: visibility.on("t.metadata"),
      });
      if (row === undefined) return { turns: 0, newest: undefined };
      const { turns, run_id: runId, assistant_id: assistantId, metadata } = row;
      if (runId === null || metadata === null) return { turns, newest: undefined };
      const first = metadata[TASK_ID];
      const taskId = taskIdOf({ threadId, runId: typeof first === "string" ? first : runId });
      return { turns, newest: { taskId, assistantId, metadata } };
    },

    /**
     * Newest status first. `pageToken`: of the page behind a task. `total`: at most `COUNTED_AT_MOST`. Index:
     * runs_of_a2a.
     */
    async list(caller: Caller, search: TaskSearch, signal: AbortSignal) {
      const asked = { ...(search.threadId === undefined ? {} : { thread_id: search.threadId }) };
      const visibility = await authorize(caller, "threads", "search", asked);
      const conditions = [
        sql<SqlBool>`r.assistant_id = ${search.assistantId}::uuid`,
        sqlOf<SqlBool>(runVisible(visibility)),
      ];
      if (search.threadId !== undefined)
        conditions.push(sql<SqlBool>`r.thread_id = ${search.threadId}::uuid`);
      if (search.since !== undefined)
        conditions.push(sql<SqlBool>`r.updated_at >= ${search.since.toISOString()}::timestamptz`);
      const count = async (): Promise<number> => {
        const all = sql.join(conditions, sql` and `) as RawBuilder<SqlBool>;
        const [counted] = await composedRead<{ total: string }>(
          database.boundedRead,
          sql`select count(*) as total from (${matching(all, search)} limit ${COUNTED_AT_MOST}) counted`,
          { signal },
        );
        return Number(counted?.total ?? 0);
      };
      const { pageToken } = search;
      const [us = "", runId = "", before = ""] =
        pageToken === undefined ? [] : readCursor(pageToken, ORDER, [MICROSECONDS, ID, COUNT]);
      const total = pageToken === undefined ? await count() : Number(before);
      if (pageToken !== undefined)
        conditions.push(
          sql<SqlBool>`(r.updated_at, r.run_id) < (${timeOf(us)}::timestamptz, ${runId}::uuid)`,
        );
      const page = sql.join(conditions, sql` and `) as RawBuilder<SqlBool>;
      const rows = await composedRead<TaskRow & PageColumns & { updated_us: string }>(
        database.boundedRead,
        sql`${matching(page, search)} order by updated_at desc, run_id desc limit ${search.limit + 1}`,
        { signal, weight: { columns: ["metadata", "error", "interrupts"] } },
      );
      const shown = rows.slice(0, search.limit);
      return {
        tasks: shown.map(({ page_rows: _rows, weight_before: _weight, updated_us: updated, ...row }) => {
          const first = row.metadata[TASK_ID];
          const task = taskOf(database, typeof first === "string" ? first : row.run_id, row);
          return { task, pageToken: writeCursor(ORDER, [updated, row.run_id, String(total)]) };
        }),
        isLast: shown.length >= Number(rows[0]?.page_rows ?? 0),
        total,
      };
    },
  };
};

export type TaskRepository = ReturnType<typeof createTaskRepository>;
