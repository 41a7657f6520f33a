import type { Queryable } from "../../database/database.ts";
import { nameParameters } from "../../database/named-parameters.ts";
import type { RunRow } from "../../database/tables.ts";
import { isSilent, SILENCE_PARAMETERS, type Silence } from "./silence.ts";

/** A run whose worker went silent; `attempt` is the one that was lost. */
export type LostRunRow = Pick<RunRow, "run_id" | "thread_id" | "graph_id" | "attempt" | "lost_attempts">;

/** running → pending, for what may be tried again. Indexes: see `isSilent`, and runs_pkey. */
const REQUEUE = nameParameters(
  SILENCE_PARAMETERS,
  (sql) => `with expired as (
  select r.run_id from threadloom.runs r
  where ${isSilent(sql)} and r.lost_attempts + 1 < ${sql.maxAttempts} and r.cancel_action is null
  order by r.run_id for update skip locked)
update threadloom.runs r set status = 'pending', worker_id = null, lease_until = null, updated_at = now(),
  lost_attempts = r.lost_attempts + 1
from expired where r.run_id = expired.run_id
returning r.run_id, r.thread_id, r.graph_id, r.attempt, r.lost_attempts`,
);

/**
 * Runs whose holder went silent go back to the queue in one statement, if they have attempts left and nobody
 * asked to cancel them.
 */
export const requeue = async (queryable: Queryable, silence: Silence): Promise<LostRunRow[]> =>
  await REQUEUE.query<LostRunRow>(queryable, silence);
