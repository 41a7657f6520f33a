import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { RunRow } from "../../../platform/database/tables.ts";
import { openRuns } from "../columns.ts";
import {
  assistant,
  CREATE_PARAMETERS,
  insertRun,
  type Creation,
  keptConfig,
  THREAD_VISIBLE,
  WITH_GRAPH,
  type CreationRights,
  type NewRun,
} from "./create.ts";

interface CreationBehindOthers extends Creation {
  /** Pending runs that were ended in favour of this one. */
  replacedPending: number;
  /** Includes this run; null: no limit. */
  pendingAtMost: number | null;
}

const PARAMETERS = {
  ...CREATE_PARAMETERS,
  ...THREAD_VISIBLE,
  replacedPending: ["integer", (creation: CreationBehindOthers) => creation.replacedPending],
  pendingAtMost: ["integer", (creation: CreationBehindOthers) => creation.pendingAtMost],
} as const;

/**
 * → pending, on a thread that may be busy; the caller holds the thread's lock. Indexes: threads_pkey,
 * runs_one_running_per_thread, runs_pending_of_thread.
 */
const CREATE_BEHIND_OTHERS = statement(
  PARAMETERS,
  (sql) => `with ${assistant(sql)},
thread as (
  update threadloom.threads t set unfinished_runs = t.unfinished_runs + 1 - ${sql.replacedPending}, turns = t.turns + 1,
    status = 'busy', updated_at = now(), version = t.version + 1, metadata = ${WITH_GRAPH}, config = ${keptConfig(sql)}
  from assistant a, threadloom.threads before
  where t.thread_id = ${sql.threadId} and before.thread_id = ${sql.threadId}
    and ${sql.threadVisible} and (${sql.pendingAtMost} is null or t.unfinished_runs - ${sql.replacedPending} < ${sql.pendingAtMost}
      + (select count(*) from threadloom.runs x where x.thread_id = ${sql.threadId} and x.status = 'running'))
  returning t.metadata, t.config, before.metadata as before, before.config as config_before, false as settled, 0 as turn,
    ${sql.afterSeconds} <= 0 and exists (
      select from threadloom.runs x where x.thread_id = ${sql.threadId}
        and (x.status = 'running' or (x.status = 'pending' and x.available_at <= now()))) as behind)
${insertRun(sql)}`,
);

/** Undefined if the assistant is missing or hidden, or the thread has `pendingAtMost` pending runs. */
export const createBehindOthers = async (
  transaction: Queryable,
  rights: CreationRights,
  run: NewRun,
  { replacedPending, pendingAtMost }: Pick<CreationBehindOthers, "replacedPending" | "pendingAtMost">,
): Promise<RunRow | undefined> => {
  const creation = { rights, run, claim: undefined, replacedPending, pendingAtMost };
  return openRuns(transaction, await CREATE_BEHIND_OTHERS.query<RunRow>(transaction, creation))[0];
};
