import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import { runVisible } from "../../engine/queue/run-visible.ts";
import type { Database } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import type { RunRow } from "../../platform/database/tables.ts";
import { taskNotFound } from "../../platform/domain/errors.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { Interrupt } from "./outcome.ts";
import { ORIGIN, TASK_ID, type Origin } from "./start.ts";

/** The protocols' states, without those that only they have. */
export type TaskState = "submitted" | "working" | "input-required" | "completed" | "failed" | "cancelled";

/** A run, and the runs that continue it after interrupts. */
export interface Task {
  /** `<thread id>:<id of the first run>` */
  id: string;
  threadId: string;
  firstRunId: string;
  state: TaskState;
  /** The newest run of the task. */
  run: TaskRun;
  /** Empty unless `state` is `input-required`. */
  interrupts: readonly Interrupt[];
  /** `threads.turns`, for `turnsSeen` of a run that continues the task. */
  turns: number;
}

export type TaskRun = Pick<
  RunRow,
  | "run_id"
  | "thread_id"
  | "assistant_id"
  | "status"
  | "error"
  | "metadata"
  | "resumable"
  | "created_at"
  | "updated_at"
>;

const UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const TASK = new RegExp(`^(${UUID}):(${UUID})$`);

export const taskIdOf = ({ threadId, runId }: { threadId: string; runId: string }): string =>
  `${threadId}:${runId}`;

/** Of the newest run `r` of a task on its thread `t`. */
export const TASK_COLUMNS = `r.run_id, r.thread_id, r.assistant_id, r.status, r.error, r.metadata, r.resumable, r.created_at, r.updated_at, t.turns,
    case when r.status = 'success' and not exists (select from threadloom.runs later
      where later.thread_id = r.thread_id and later.created_at > r.created_at) then t.interrupts end as interrupts`;

/**
 * The newest run of a task, and what its thread waits for if no run came after it. Ids of runs are in the order of
 * creation. Indexes: runs_by_thread, threads_pkey.
 */
const NEWEST_OF_TASK = statement(
  { threadId: "uuid", firstRunId: "uuid", visible: "fragment" },
  (sql) => `select ${TASK_COLUMNS}
  from threadloom.runs r join threadloom.threads t on t.thread_id = r.thread_id
  where r.thread_id = ${sql.threadId} and ${sql.visible}
    and (r.run_id = ${sql.firstRunId} or r.metadata ->> '${TASK_ID}' = ${sql.firstRunId}::text)
  order by r.created_at desc limit 1`,
);

export interface TaskRow extends TaskRun {
  turns: number;
  interrupts: JsonObject | null;
}

const STATES: Readonly<Record<RunRow["status"], TaskState>> = {
  pending: "submitted",
  running: "working",
  success: "completed",
  interrupted: "cancelled",
  error: "failed",
  timeout: "failed",
};

/** The task of a row with `TASK_COLUMNS`. */
export const taskOf = (database: Database, firstRunId: string, row: TaskRow): Task => {
  const { interrupts: stored, turns, ...run } = database.encryption.decrypted("runs", row);
  const { thread_id: threadId } = run;
  const opened = database.encryption.decrypted(
    "threads",
    { interrupts: stored ?? {} },
    { thread_id: threadId },
  );
  const interrupts = Object.values(opened.interrupts).flat() as unknown as Interrupt[];
  const state = interrupts.length > 0 ? "input-required" : STATES[run.status];
  const id = taskIdOf({ threadId, runId: firstRunId });
  return { id, threadId, firstRunId, state, run, interrupts, turns };
};

export const createTasks = (authorize: Authorize, database: Database) => ({
  /** Of any protocol, or of `origin` alone. Throws `not_found`. */
  async find(caller: Caller, id: string, origin?: Origin): Promise<Task> {
    const [, threadId, firstRunId] = TASK.exec(id.toLowerCase()) ?? [];
    if (threadId === undefined || firstRunId === undefined) throw taskNotFound();
    const visibility = await authorize(caller, "threads", "read", {
      thread_id: threadId,
      run_id: firstRunId,
    });
    const visible = runVisible(visibility);
    const [row] = await NEWEST_OF_TASK.query<TaskRow>(database, { threadId, firstRunId, visible });
    if (row === undefined || (origin !== undefined && row.metadata[ORIGIN] !== origin)) throw taskNotFound();
    return taskOf(database, firstRunId, row);
  },
});
