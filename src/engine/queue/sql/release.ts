import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";

/**
 * Leaves interrupts, error and resting status alone: only `finish` writes them, so the old values are still
 * there. Index: threads_pkey.
 */
const RELEASE = statement(
  { threadIds: "uuid[]", runs: "integer[]" },
  (sql) => `update threadloom.threads t set unfinished_runs = t.unfinished_runs - ended.runs, updated_at
    = now(), version = t.version + 1,
    expires_at = now() + t.ttl_minutes * interval '1 minute',
    status = case when t.unfinished_runs > ended.runs then 'busy' else t.resting_status end
  from unnest(${sql.threadIds}, ${sql.runs}) as ended(thread_id, runs) where t.thread_id = ended.thread_id`,
);

/** The caller holds the threads' locks. */
export const release = async (
  transaction: Queryable,
  runs: readonly { thread_id: string }[],
): Promise<string[]> => {
  const ended = new Map<string, number>();
  for (const run of runs) ended.set(run.thread_id, (ended.get(run.thread_id) ?? 0) + 1);
  await RELEASE.query(transaction, { threadIds: [...ended.keys()], runs: [...ended.values()] });
  return [...ended.keys()];
};
