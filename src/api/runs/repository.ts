import type { Visibility } from "../../access/visibility.ts";
import type { Database, Queryable } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import type { ExecutedRunRow, RunRow, RunStatus } from "../../platform/database/tables.ts";
import type { RunPhase } from "../../engine/events/log.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { withWholeInputs } from "../../engine/queue/large-inputs.ts";
import { againIfFreed } from "../../state/checkpoints/texts.ts";
import { openRuns, RUN_COLUMNS, SHOWN_COLUMNS } from "../../engine/queue/columns.ts";
import type { RunSelector } from "../../engine/queue/attempts.ts";
import { runVisible } from "../../engine/queue/run-visible.ts";

export type { RunSelector };

type StoredRow = RunRow & { string_bytes: number | null };

/** Waiters read this every second, so it omits the input. */
export type AwaitedRunRow = Pick<RunRow, "status" | "error" | "worker_id" | "reader_id" | "delete_thread">;

const ON_THREAD = { threadId: "uuid", visible: "fragment" } as const;

const ASSISTANT_EXISTS = statement(
  { assistantId: "uuid", visible: "fragment" },
  (sql) => `select 1 from threadloom.assistants where assistant_id = ${sql.assistantId} and ${sql.visible}`,
);

const THREAD_EXISTS = statement(
  ON_THREAD,
  (sql) => `select 1 from threadloom.threads where thread_id = ${sql.threadId} and ${sql.visible}`,
);

const THREAD_IS_HIDDEN = statement(
  ON_THREAD,
  (sql) => `select 1 from threadloom.threads
  where thread_id = ${sql.threadId} and not coalesce(${sql.visible}, false)`,
);

const THREADS_SEEN = statement(
  { threadIds: "uuid[]", visible: "fragment" },
  (sql) =>
    `select thread_id from threadloom.threads where thread_id = any(${sql.threadIds}) and ${sql.visible}`,
);

const INTERRUPTS = statement(
  ON_THREAD,
  (sql) => `select interrupts from threadloom.threads where thread_id = ${sql.threadId} and ${sql.visible}`,
);

const createSurroundings = (database: Database) => ({
  async assistantExists(visibility: Visibility<"assistants">, assistantId: string): Promise<boolean> {
    const visible = visibility.on("metadata");
    return (await ASSISTANT_EXISTS.query(database, { assistantId, visible })).length > 0;
  },

  async threadExists(
    visibility: Visibility<"threads">,
    threadId: string,
    queryable: Queryable = database,
  ): Promise<boolean> {
    const visible = visibility.on("metadata");
    return (await THREAD_EXISTS.query(queryable, { threadId, visible })).length > 0;
  },

  async threadIsHidden(
    visibility: Visibility<"threads">,
    threadId: string,
    queryable: Queryable = database,
  ): Promise<boolean> {
    if (visibility.hidesNothing) return false;
    const visible = visibility.on("metadata");
    return (await THREAD_IS_HIDDEN.query(queryable, { threadId, visible })).length > 0;
  },

  /** Locks nothing. Index: threads_pkey. */
  async threadsSeen(
    visibility: Visibility<"threads">,
    threadIds: readonly string[],
    queryable: Queryable,
  ): Promise<string[]> {
    if (visibility.hidesNothing) return [...threadIds];
    const visible = visibility.on("metadata");
    const rows = await THREADS_SEEN.query<{ thread_id: string }>(queryable, { threadIds, visible });
    return rows.map((row) => row.thread_id);
  },

  /** `{task_id: [{id, value}]}` */
  async interrupts(visibility: Visibility<"threads">, threadId: string): Promise<JsonObject> {
    const visible = visibility.on("metadata");
    const [row] = await INTERRUPTS.query<{ interrupts: JsonObject }>(database, { threadId, visible });
    return row === undefined
      ? {}
      : database.encryption.decrypted("threads", row, { thread_id: threadId }).interrupts;
  },
});

const VISIBLE_RUN = { threadId: "uuid", runId: "uuid", visible: "fragment" } as const;
const findRun = (columns: string) =>
  statement(
    VISIBLE_RUN,
    (sql) => `select ${columns} from threadloom.runs r
    where r.run_id = ${sql.runId} and r.thread_id = ${sql.threadId} and ${sql.visible}`,
  );
const FIND = findRun(`${SHOWN_COLUMNS}, r.string_bytes`);
const FIND_TO_EXECUTE = findRun(`${RUN_COLUMNS}, r.auth_user`);
const FIND_AWAITED = findRun("status, error, worker_id, reader_id, delete_thread");

const PHASE = statement(
  { threadId: "uuid", runId: "uuid", processId: "uuid" },
  (sql) => `select status, worker_id is not distinct from ${sql.processId} as here
  from threadloom.runs where thread_id = ${sql.threadId} and run_id = ${sql.runId}`,
);

const THREAD_OF = statement(
  { runId: "uuid", visible: "fragment" },
  (sql) => `select thread_id from threadloom.runs r where run_id = ${sql.runId} and ${sql.visible}`,
);

/**
 * A hidden run is treated as missing. Raw SQL, because most statements run for each run or each second;
 * engine/queue/sql has all writes of `runs`.
 */
export const createRunRepository = (database: Database) => ({
  ...createSurroundings(database),

  async find(
    visibility: Visibility<"threads">,
    run: RunSelector,
    queryable: Queryable = database,
  ): Promise<RunRow | undefined> {
    return await againIfFreed(async () => {
      const rows = await FIND.query<StoredRow>(queryable, { ...run, visible: runVisible(visibility) });
      return (await withWholeInputs(queryable, run.threadId, openRuns(queryable, rows)))[0];
    });
  },

  async findToExecute(
    visibility: Visibility<"threads">,
    run: RunSelector,
  ): Promise<ExecutedRunRow | undefined> {
    const visible = runVisible(visibility);
    return openRuns(database, await FIND_TO_EXECUTE.query<ExecutedRunRow>(database, { ...run, visible }))[0];
  },

  async findAwaited(visibility: Visibility<"threads">, run: RunSelector): Promise<AwaitedRunRow | undefined> {
    const visible = runVisible(visibility);
    const [row] = await FIND_AWAITED.query<AwaitedRunRow>(database, { ...run, visible });
    return row && database.encryption.decrypted("runs", row, { run_id: run.runId });
  },

  /** For the engine, without a caller. */
  async phaseOf(run: RunSelector, processId: string): Promise<RunPhase> {
    const [row] = await PHASE.query<{ status: RunStatus; here: boolean }>(database, {
      ...run,
      processId,
    });
    if (row === undefined) return "ended";
    if (row.status === "pending" || (row.status === "running" && row.here)) return "pending";
    return row.status === "running" ? "running" : "ended";
  },

  async threadOf(visibility: Visibility<"threads">, runId: string): Promise<string | undefined> {
    const visible = runVisible(visibility);
    const rows = await THREAD_OF.query<{ thread_id: string }>(database, { runId, visible });
    return rows[0]?.thread_id;
  },
});

export type RunRepository = ReturnType<typeof createRunRepository>;
