import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { RunRow } from "../../../platform/database/tables.ts";
import { missesHeartbeats, MISSED_HEARTBEAT_PARAMETERS, type MissedHeartbeats } from "./missed-heartbeats.ts";

const mayBeTriedAgain = (sql: Readonly<Record<keyof typeof MISSED_HEARTBEAT_PARAMETERS, string>>): string =>
  `${missesHeartbeats(sql)} and r.lost_attempts + 1 < ${sql.maxAttempts} and r.cancel_action is null`;

export type LostRunRow = Pick<RunRow, "run_id" | "thread_id" | "graph_id" | "attempt" | "lost_attempts">;

/**
 * running → pending. Locks threads before runs, as everywhere; locked threads wait for the next sweep.
 * Indexes: see `missesHeartbeats`, threads_pkey, runs_pkey.
 */
const REQUEUE = statement(
  MISSED_HEARTBEAT_PARAMETERS,
  (sql) => `with thread as (
  select t.thread_id from threadloom.threads t
  where t.thread_id = any (array(select r.thread_id from threadloom.runs r where ${mayBeTriedAgain(sql)}))
  order by t.thread_id for no key update skip locked),
expired as (
  select r.run_id, r.thread_id from threadloom.runs r join thread on thread.thread_id = r.thread_id
  where ${mayBeTriedAgain(sql)}
  order by r.run_id for update of r skip locked),
requeued as (
  update threadloom.runs r set status = 'pending', worker_id = null, lease_until = null, updated_at = now(),
    lost_attempts = r.lost_attempts + 1
  from expired e where r.thread_id = e.thread_id and r.run_id = e.run_id
  returning r.run_id, r.thread_id, r.graph_id, r.attempt, r.lost_attempts),
turned as (
  update threadloom.threads t set turns = t.turns + 1 from requeued q where t.thread_id = q.thread_id)
select * from requeued`,
);

/** Skips runs without attempts left, and runs to be cancelled. */
export const requeue = async (queryable: Queryable, missed: MissedHeartbeats): Promise<LostRunRow[]> =>
  await REQUEUE.query<LostRunRow>(queryable, missed);
