import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { CancelReason } from "../../../platform/database/tables.ts";
import { ENDED_COLUMNS } from "../columns.ts";
import { recorded, withPushes, type RecordEnds, type RecordPushes } from "./ended.ts";

type Run = Record<"run_id" | "thread_id", string>;

const numbered = (sql: Record<"threadIds" | "runIds", string>): string => `never_began as (
    select r.run_id, r.thread_id, row_number() over (partition by r.thread_id order by r.created_at, r.run_id)::int as place
    from threadloom.runs r
    where r.thread_id = any(${sql.threadIds}) and r.run_id = any(${sql.runIds}) and r.attempt = 0),
  counted as (
    update threadloom.threads t set turns = t.turns + added.turns
    from (select l.thread_id, count(*)::int as turns from never_began l group by l.thread_id) as added
    where t.thread_id = added.thread_id
    returning t.thread_id, t.turns - added.turns - t.unfinished_runs + 1 as before)`;

const idsOf = (runs: readonly Run[]) => ({
  threadIds: runs.map((run) => run.thread_id),
  runIds: runs.map((run) => run.run_id),
});

const NUMBER_ENDS = statement(
  { threadIds: "uuid[]", runIds: "uuid[]" },
  (sql) => `with ${numbered(sql)}
  select l.run_id, c.before + l.place as turn from never_began l join counted c on c.thread_id = l.thread_id`,
);

/**
 * Places the ends of deleted runs among the thread's events; returns run id -> turn. The caller holds the
 * locks. Indexes: runs_pkey, threads_pkey.
 */
export const numberEnds = async (
  transaction: Queryable,
  runs: readonly Run[],
): Promise<ReadonlyMap<string, number>> => {
  const rows = await NUMBER_ENDS.query<{ run_id: string; turn: number }>(transaction, idsOf(runs));
  return new Map(rows.map(({ run_id: runId, turn }) => [runId, turn]));
};

/**
 * pending → interrupted. Each run that never began adds one to `threads.turns`, so no attempt shares the turn
 * of its end. Indexes: runs_pkey, threads_pkey.
 */
export const endingWaiting = (record: RecordEnds | undefined, recordPushes?: RecordPushes) => {
  const END_WAITING = statement(
    { threadIds: "uuid[]", runIds: "uuid[]", reason: "text" },
    (sql) => `with ${numbered(sql)},
  ended as (
    update threadloom.runs r set status = 'interrupted', cancel_reason = ${sql.reason}, updated_at = now(),
      turn = coalesce(c.before + l.place, r.turn)
    from unnest(${sql.runIds}) as waiting(run_id)
      left join never_began l on l.run_id = waiting.run_id left join counted c on c.thread_id = l.thread_id
    where r.thread_id = any(${sql.threadIds}) and r.run_id = waiting.run_id
    returning ${ENDED_COLUMNS}, r.status, r.error)${recorded(record)}${withPushes(recordPushes)}
  select count(*) from ended`,
  );

  /** The caller holds the runs' locks, and updates the run counts of their threads. */
  return async (transaction: Queryable, runs: readonly Run[], reason: CancelReason): Promise<void> => {
    await END_WAITING.query(transaction, { ...idsOf(runs), reason });
  };
};
