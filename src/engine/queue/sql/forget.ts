import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { ENDED_COLUMNS } from "../columns.ts";
import { recorded, type RecordEnds } from "./ended.ts";

/** Index: run_events_pkey. */
const ROLLED_BACK = `events as (
  delete from threadloom.run_events e using forgotten f where e.thread_id = f.thread_id and e.run_id = f.run_id),
ended as (
  select ${ENDED_COLUMNS}, 'rolled-back' as status, null::json as error from forgotten r)`;

/** pending or running → the row is gone: rollback. */
export const forgetting = (record: RecordEnds | undefined) => {
  /**
   * Restores the thread's config, and its metadata if they are still as the run set them. If a later run
   * exists, its row takes over the old values instead. Indexes: runs_pkey, runs_by_thread.
   */
  const FORGET = statement(
    { threadId: "uuid", runId: "uuid" },
    (sql) => `with forgotten as (
  delete from threadloom.runs r where r.run_id = ${sql.runId} and r.thread_id = ${sql.threadId}
  returning ${ENDED_COLUMNS}, r.created_at, r.replaced_metadata, r.replaced_config,
    jsonb_build_object('graph_id', r.graph_id, 'assistant_id', r.assistant_id) as own),
${ROLLED_BACK}${recorded(record)},
next as (
  select r.run_id from threadloom.runs r, forgotten f
  where r.thread_id = ${sql.threadId} and (r.created_at, r.run_id) > (f.created_at, f.run_id)
  order by r.created_at, r.run_id limit 1),
taken_over as (
  update threadloom.runs r set
    replaced_metadata = case when f.replaced_metadata is not null and (r.replaced_metadata = f.own
        or (r.replaced_metadata is null and r.graph_id = f.graph_id and r.assistant_id = f.assistant_id))
      then f.replaced_metadata else r.replaced_metadata end,
    replaced_config = coalesce(f.replaced_config, r.replaced_config)
  from forgotten f, next n
  where r.thread_id = ${sql.threadId} and r.run_id = n.run_id and (f.replaced_metadata is not null or f.replaced_config is not null))
update threadloom.threads t set
  metadata = case when t.metadata @> f.own and f.replaced_metadata is not null
    then t.metadata - array['graph_id', 'assistant_id'] || f.replaced_metadata else t.metadata end,
  config = coalesce(f.replaced_config, t.config), version = t.version + 1
from forgotten f
where t.thread_id = ${sql.threadId} and (f.replaced_metadata is not null or f.replaced_config is not null)
  and not exists (select from next)`,
  );

  /** For runs that replaced neither metadata nor config. Index: runs_pkey. */
  const FORGET_PLAIN = statement(
    { threadIds: "uuid[]", runIds: "uuid[]" },
    (sql) => `with forgotten as (
  delete from threadloom.runs r
  where r.thread_id = any(${sql.threadIds}) and r.run_id = any(${sql.runIds}) and r.replaced_metadata is null and r.replaced_config is null
  returning ${ENDED_COLUMNS}),
${ROLLED_BACK}${recorded(record)}
select run_id from forgotten`,
  );

  /** The caller holds the locks, and updates the thread's run count. */
  const forgetRun = async (transaction: Queryable, threadId: string, runId: string): Promise<void> => {
    await FORGET.query(transaction, { threadId, runId });
  };

  return {
    forgetRun,

    async forgetRuns(
      transaction: Queryable,
      runs: readonly { run_id: string; thread_id: string }[],
    ): Promise<void> {
      const gone = await FORGET_PLAIN.query<{ run_id: string }>(transaction, {
        threadIds: runs.map((run) => run.thread_id),
        runIds: runs.map((run) => run.run_id),
      });
      const forgotten = new Set(gone.map((run) => run.run_id));
      for (const run of runs) {
        if (!forgotten.has(run.run_id)) await forgetRun(transaction, run.thread_id, run.run_id);
      }
    },
  };
};
