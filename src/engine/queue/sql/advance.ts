import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import { nextBehind } from "./next-of-thread.ts";

/** Indexes: runs_pkey (claim.ts explains the status expression), runs_behind, those of `nextBehind`. */
const ADVANCE = statement(
  { threadIds: "uuid[]" },
  (sql) => `update threadloom.runs r set behind = false
  where r.status || '' = 'pending' and r.behind and r.run_id = any (array(
    select (${nextBehind("t.thread_id")}) from unnest(${sql.threadIds}) as t(thread_id)))`,
);

/**
 * Lets the next run of each thread start. Call it in or after the transaction that ended the run: an earlier
 * snapshot still sees that run as running.
 */
export const advance = async (queryable: Queryable, threadIds: readonly string[]): Promise<void> => {
  await ADVANCE.query(queryable, { threadIds });
};
