import type { Visibility } from "../../access/visibility.ts";
import type { Database, Queryable } from "../../platform/database/database.ts";
import type { ExecutedRunRow, RunRow, RunStatus } from "../../platform/database/tables.ts";
import type { RunPhase } from "../../engine/events/log.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { LARGE_ANSWER_BYTES, type ReadBudget } from "../../platform/lib/large-answers.ts";
import { openRuns, RUN_COLUMNS, SHOWN_COLUMNS } from "../../engine/queue/columns.ts";
import type { RunSelector } from "../../engine/queue/attempts.ts";
import { runVisible } from "../../engine/queue/run-visible.ts";

export type { RunSelector };

/** Large `kwargs` (the input) are replaced by their length. */
const BOUNDED_COLUMNS = `${SHOWN_COLUMNS.replace(
  "r.kwargs",
  `case when octet_length(r.kwargs::text) <= ${LARGE_ANSWER_BYTES} then r.kwargs end as kwargs`,
)}, octet_length(r.kwargs::text) as kwargs_bytes`;

/** Waiters read this every second, so it omits the input. */
export type AwaitedRunRow = Pick<RunRow, "status" | "error" | "worker_id" | "reader_id" | "delete_thread">;

const createSurroundings = (database: Database) => ({
  async assistantExists(visibility: Visibility<"assistants">, assistantId: string): Promise<boolean> {
    const values: unknown[] = [assistantId];
    const visible = visibility.condition("metadata", values);
    const rows = await database.query(
      `select 1 from threadloom.assistants where assistant_id = $1 and ${visible}`,
      values,
    );
    return rows.length > 0;
  },

  async threadExists(
    visibility: Visibility<"threads">,
    threadId: string,
    queryable: Queryable = database,
  ): Promise<boolean> {
    const values: unknown[] = [threadId];
    const visible = visibility.condition("metadata", values);
    const rows = await queryable.query(
      `select 1 from threadloom.threads where thread_id = $1 and ${visible}`,
      values,
    );
    return rows.length > 0;
  },

  async threadIsHidden(
    visibility: Visibility<"threads">,
    threadId: string,
    queryable: Queryable = database,
  ): Promise<boolean> {
    if (visibility.hidesNothing) return false;
    const values: unknown[] = [threadId];
    const visible = visibility.condition("metadata", values);
    const rows = await queryable.query(
      `select 1 from threadloom.threads where thread_id = $1 and not coalesce(${visible}, false)`,
      values,
    );
    return rows.length > 0;
  },

  /** Locks nothing. Index: threads_pkey. */
  async threadsSeen(
    visibility: Visibility<"threads">,
    threadIds: readonly string[],
    queryable: Queryable,
  ): Promise<string[]> {
    if (visibility.hidesNothing) return [...threadIds];
    const values: unknown[] = [threadIds];
    const visible = visibility.condition("metadata", values);
    const rows = await queryable.query<{ thread_id: string }>(
      `select thread_id from threadloom.threads where thread_id = any($1::uuid[]) and ${visible}`,
      values,
    );
    return rows.map((row) => row.thread_id);
  },

  /** `{task_id: [{id, value}]}` */
  async interrupts(visibility: Visibility<"threads">, threadId: string): Promise<JsonObject> {
    const values: unknown[] = [threadId];
    const visible = visibility.condition("metadata", values);
    const [row] = await database.query<{ interrupts: JsonObject }>(
      `select interrupts from threadloom.threads where thread_id = $1 and ${visible}`,
      values,
    );
    return row === undefined
      ? {}
      : database.encryption.decrypted("threads", row, { thread_id: threadId }).interrupts;
  },
});

/**
 * A hidden run is treated as missing. engine/queue/sql has all writes of `runs`. Raw, because most statements run for
 * each run or each second of waiting.
 */
export const createRunRepository = (database: Database) => ({
  ...createSurroundings(database),

  async find(
    visibility: Visibility<"threads">,
    { threadId, runId }: RunSelector,
    queryable: Queryable = database,
  ): Promise<RunRow | undefined> {
    const values: unknown[] = [runId, threadId];
    const visible = runVisible(visibility, values);
    const rows = await queryable.query<RunRow>(
      `select ${SHOWN_COLUMNS} from threadloom.runs r where r.run_id = $1 and r.thread_id = $2 and ${visible}`,
      values,
    );
    return openRuns(queryable, rows)[0];
  },

  async findToExecute(
    visibility: Visibility<"threads">,
    { threadId, runId }: RunSelector,
  ): Promise<ExecutedRunRow | undefined> {
    const values: unknown[] = [runId, threadId];
    const visible = runVisible(visibility, values);
    const rows = await database.query<ExecutedRunRow>(
      `select ${RUN_COLUMNS}, r.auth_user from threadloom.runs r where r.run_id = $1 and r.thread_id = $2 and ${visible}`,
      values,
    );
    return openRuns(database, rows)[0];
  },

  /** Reserves before a second statement reads a large input. */
  async findWithBudget(
    visibility: Visibility<"threads">,
    selector: RunSelector,
    budget: ReadBudget,
  ): Promise<RunRow | undefined> {
    const values: unknown[] = [selector.runId, selector.threadId];
    const visible = runVisible(visibility, values);
    const [row] = await database.query<RunRow & { kwargs_bytes: number }>(
      `select ${BOUNDED_COLUMNS} from threadloom.runs r where r.run_id = $1 and r.thread_id = $2 and ${visible}`,
      values,
    );
    if (row === undefined || row.kwargs_bytes <= LARGE_ANSWER_BYTES)
      return row && database.encryption.decrypted("runs", row);
    await budget.reserve(row.kwargs_bytes);
    return await this.find(visibility, selector);
  },

  async findAwaited(
    visibility: Visibility<"threads">,
    { threadId, runId }: RunSelector,
  ): Promise<AwaitedRunRow | undefined> {
    const values: unknown[] = [runId, threadId];
    const visible = runVisible(visibility, values);
    const [row] = await database.query<AwaitedRunRow>(
      `select status, error, worker_id, reader_id, delete_thread from threadloom.runs r
       where run_id = $1 and thread_id = $2 and ${visible}`,
      values,
    );
    return row && database.encryption.decrypted("runs", row, { run_id: runId });
  },

  /** Deleted runs are missing. */
  async findAll(visibility: Visibility<"threads">, runIds: readonly string[]): Promise<RunRow[]> {
    const values: unknown[] = [runIds];
    const visible = runVisible(visibility, values);
    const rows = await database.query<RunRow>(
      `select ${RUN_COLUMNS} from threadloom.runs r where r.run_id = any($1::uuid[]) and ${visible}
       order by array_position($1::uuid[], r.run_id)`,
      values,
    );
    return openRuns(database, rows);
  },

  /** For the engine, without a caller. */
  async phaseOf({ threadId, runId }: RunSelector, processId: string): Promise<RunPhase> {
    const [row] = await database.query<{ status: RunStatus; here: boolean; unlogged: boolean }>(
      `select status, worker_id is not distinct from $3::uuid as here, unlogged_attempt is not distinct from attempt as unlogged
       from threadloom.runs where thread_id = $1 and run_id = $2`,
      [threadId, runId, processId],
    );
    if (row === undefined) return "ended";
    if (row.status === "pending" || (row.status === "running" && row.here)) return "pending";
    if (row.status === "running") return row.unlogged ? "running-unlogged" : "running";
    return row.unlogged ? "ended-unlogged" : "ended";
  },

  async threadOf(visibility: Visibility<"threads">, runId: string): Promise<string | undefined> {
    const values: unknown[] = [runId];
    const visible = runVisible(visibility, values);
    const rows = await database.query<{ thread_id: string }>(
      `select thread_id from threadloom.runs r where run_id = $1 and ${visible}`,
      values,
    );
    return rows[0]?.thread_id;
  },
});

export type RunRepository = ReturnType<typeof createRunRepository>;
