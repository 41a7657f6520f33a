import type { Queryable } from "../../../platform/database/database.ts";
import { isRunningRun } from "../../../platform/database/grouping.ts";
import { statement } from "../../../platform/database/statement.ts";
import { freeUnreferenced, NOTE_UNUSED } from "./freeing.ts";

/** Also deletes the writes of other runs on the run's checkpoints. */
const DELETE_RUN_CHECKPOINTS = statement(
  { threadId: "uuid", runId: "uuid" },
  (sql) => `
with gone as (
  delete from threadloom.checkpoints where thread_id = ${sql.threadId} and run_id = ${sql.runId} returning checkpoint_ns, checkpoint_id
)
delete from threadloom.checkpoint_writes w using gone g
where w.thread_id = ${sql.threadId} and w.checkpoint_ns = g.checkpoint_ns and w.checkpoint_id = g.checkpoint_id`,
);
const DELETE_RUN_WRITES = statement(
  { threadId: "uuid", runId: "uuid" },
  (sql) =>
    `delete from threadloom.checkpoint_writes where thread_id = ${sql.threadId} and run_id = ${sql.runId}`,
);

export const deleteRun = async (queryable: Queryable, threadId: string, runId: string): Promise<void> => {
  await DELETE_RUN_CHECKPOINTS.query(queryable, { threadId, runId });
  await DELETE_RUN_WRITES.query(queryable, { threadId, runId });
  await freeUnreferenced(queryable, threadId);
};

/**
 * Deletes what the run wrote for tasks that have not ended: rows without a write of an index from 0 on. Only the run's
 * current attempt deletes.
 */
const DELETE_UNENDED = statement(
  { threadId: "uuid", runId: "uuid", attempt: "integer" },
  (sql) => `
delete from threadloom.checkpoint_writes w
where w.thread_id = ${sql.threadId} and w.run_id = ${sql.runId} and w.writes !~ '(^|\n)[0-9]'
  and exists (select from threadloom.runs r where ${isRunningRun(sql)})`,
);

export const deleteUnended = async (
  queryable: Queryable,
  source: { threadId: string; runId: string; attempt: number },
): Promise<void> => {
  await DELETE_UNENDED.query(queryable, source);
};

const DELETE_THREAD = statement(
  { threadId: "uuid" },
  (sql) => `
with gone_elements as (delete from threadloom.checkpoint_elements where thread_id = ${sql.threadId}),
gone_contents as (delete from threadloom.checkpoint_contents where thread_id = ${sql.threadId}
  returning thread_id, object_id),
unused as (${NOTE_UNUSED("gone_contents")}),
gone_writes as (delete from threadloom.checkpoint_writes where thread_id = ${sql.threadId})
delete from threadloom.checkpoints where thread_id = ${sql.threadId}`,
);

export const deleteThread = async (queryable: Queryable, threadId: string): Promise<void> => {
  await DELETE_THREAD.query(queryable, { threadId });
};
