import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { ClaimedRunRow } from "../../../platform/database/tables.ts";
import { openRuns } from "../columns.ts";
import {
  assistant,
  CREATE_PARAMETERS,
  insertRun,
  keptConfig,
  WITH_GRAPH,
  THREAD_VISIBLE,
  type Creation,
  type CreationRights,
  type ImmediateClaim,
  type NewRun,
} from "./create.ts";

const PARAMETERS = {
  ...CREATE_PARAMETERS,
  ...THREAD_VISIBLE,
  turnsSeen: ["integer", ({ run }: Creation) => run.turnsSeen ?? null],
} as const;

/**
 * → running, or pending without a slot. One statement: 4,575/s against 1,848/s with five, 385/s against 85/s
 * at a round trip of 2.5 ms. The first update of the thread's row gets the thread; a second one waits, reads
 * the locked row again and sees `unfinished_runs = 1`. `before` is not read again, so a rollback may restore
 * metadata that miss a concurrent change. Indexes: threads_pkey, assistants_pkey, checkpoints_pkey.
 */
const CREATE_ON_IDLE_THREAD = statement(
  PARAMETERS,
  (sql) => `with ${assistant(sql)},
thread as (
  update threadloom.threads t set unfinished_runs = 1, turns = t.turns + 1, status = 'busy', updated_at = now(),
    version = t.version + 1,
    metadata = ${WITH_GRAPH}, config = ${keptConfig(sql)}
  from assistant a, threadloom.threads before
  where t.thread_id = ${sql.threadId} and t.unfinished_runs = 0 and before.thread_id = ${sql.threadId}
    and (${sql.turnsSeen} is null or t.turns = ${sql.turnsSeen}) and ${sql.threadVisible}
  returning t.metadata, t.config, before.metadata as before, before.config as config_before,
    t.state_updated_at = before.state_updated_at as settled, false as behind, t.turns as turn)
${insertRun(sql)}`,
);

/**
 * Undefined if the thread is missing, hidden, busy or past `turnsSeen`; if the assistant is missing or
 * hidden; or if the run would have to wait and `mayWait` is false.
 */
export const createOnIdleThread = async (
  queryable: Queryable,
  rights: CreationRights,
  run: NewRun,
  claim: ImmediateClaim | undefined,
  mayWait = true,
): Promise<ClaimedRunRow | undefined> => {
  return openRuns(
    queryable,
    await CREATE_ON_IDLE_THREAD.query<ClaimedRunRow>(queryable, { rights, run, claim, mayWait }),
  )[0];
};
