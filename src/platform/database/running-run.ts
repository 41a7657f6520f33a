/**
 * For joins: `r` is the running run with these ids. Always a lookup in runs_pkey: `any(array[…])`, `is not distinct`
 * and `|| ''` keep the planner from the index of all runs of a thread, and from that of all running runs.
 */
export const isRunningRun = (sql: { threadId: string; runId: string; attempt: string }): string =>
  `r.run_id = any(array[${sql.runId}]) and r.thread_id is not distinct from ${sql.threadId}
      and r.attempt = ${sql.attempt} and r.status || '' = 'running'`;
