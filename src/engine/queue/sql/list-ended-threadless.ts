import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";

/** Keeps the sweep short beside live traffic. */
const THREADS_AT_MOST = 5_000;

/**
 * The limit is a literal: for a parameter the planner expects a tenth of all rows. Index:
 * runs_ended_threadless.
 */
const LIST_ENDED_THREADLESS = statement(
  { seconds: "float8" },
  (sql) => `select thread_id from threadloom.runs
  where delete_thread and status not in ('pending', 'running')
    and updated_at < now() - make_interval(secs => ${sql.seconds})
  order by updated_at limit ${THREADS_AT_MOST}`,
);

/** Oldest first. */
export const listEndedThreadless = async (queryable: Queryable, seconds: number): Promise<string[]> => {
  const rows = await LIST_ENDED_THREADLESS.query<{ thread_id: string }>(queryable, { seconds });
  return rows.map((row) => row.thread_id);
};
