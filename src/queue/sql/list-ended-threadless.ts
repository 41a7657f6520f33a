import type { Queryable } from "../../database/database.ts";

/** Index: runs_ended_threadless. */
const LIST_ENDED_THREADLESS = `select thread_id from threadloom.runs
  where delete_thread and status not in ('pending', 'running')
    and updated_at < now() - make_interval(secs => $1::float8)
  order by updated_at limit $2`;

/** Threads of threadless runs that ended more than `seconds` ago. */
export const listEndedThreadless = async (
  queryable: Queryable,
  seconds: number,
  limit: number,
): Promise<string[]> => {
  const rows = await queryable.query<{ thread_id: string }>(LIST_ENDED_THREADLESS, [seconds, limit]);
  return rows.map((row) => row.thread_id);
};
