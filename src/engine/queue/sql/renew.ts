import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { CancelAction } from "../../../platform/database/tables.ts";
import type { AttemptSelector } from "../attempts.ts";

export interface HeartbeatRow {
  run_id: string;
  attempt: number;
  cancel_action: CancelAction | null;
  read_elsewhere: boolean;
}

/**
 * An attempt without a returned row is lost. Locks runs in the order of their ids, to avoid deadlocks. The
 * heartbeat thread (engine/lease) also sends this text, so the order of the parameters matters. Index:
 * runs_pkey.
 */
export const RENEW = statement(
  { threadIds: "uuid[]", runIds: "uuid[]", attempts: "integer[]", leaseSeconds: "float8" },
  (sql) => `with mine as (
  select r.thread_id, r.run_id
  from threadloom.runs r, unnest(${sql.threadIds}, ${sql.runIds}, ${sql.attempts}) as held(thread_id, run_id, attempt)
  where r.thread_id = held.thread_id and r.run_id = held.run_id and r.attempt = held.attempt and r.status = 'running'
  order by r.run_id for no key update of r)
update threadloom.runs r set lease_until = now() + make_interval(secs => ${sql.leaseSeconds})
from mine where r.thread_id = mine.thread_id and r.run_id = mine.run_id
returning r.run_id, r.attempt, r.cancel_action, coalesce(r.reader_id <> r.worker_id, false) as read_elsewhere`,
);

export const renew = async (
  queryable: Queryable,
  attempts: readonly AttemptSelector[],
  leaseSeconds: number,
): Promise<HeartbeatRow[]> =>
  await RENEW.query<HeartbeatRow>(queryable, {
    threadIds: attempts.map((held) => held.threadId),
    runIds: attempts.map((held) => held.runId),
    attempts: attempts.map((held) => held.attempt),
    leaseSeconds,
  });
