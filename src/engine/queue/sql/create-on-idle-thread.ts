import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { ClaimedRunRow } from "../../../platform/database/tables.ts";
import { openRuns } from "../columns.ts";
import {
  ASSISTANT_VISIBLE,
  CLAIM_PARAMETERS,
  createOne,
  RUN_PARAMETERS,
  takeThread,
  THREAD_VISIBLE,
  type Creation,
  type CreationRights,
  type ImmediateClaim,
  type NewRun,
} from "./create.ts";

const PARAMETERS = {
  ...RUN_PARAMETERS,
  turnsSeen: ["integer", ({ run }: Creation) => run.turnsSeen ?? null],
} as const;
const CONDITIONS = { ...ASSISTANT_VISIBLE, ...THREAD_VISIBLE };

/**
 * → running, or pending without a slot. One statement creates 4,575 runs/s, five create 1,848 (at a round
 * trip of 2.5 ms: 385 and 85). A concurrent creation waits for the thread's row and then sees
 * `unfinished_runs = 1`. Indexes: threads_pkey, assistants_pkey, checkpoints_pkey.
 */
const CREATE_ON_IDLE_THREAD = statement({ ...PARAMETERS, ...CLAIM_PARAMETERS, ...CONDITIONS }, (sql) =>
  createOne(
    sql,
    takeThread(sql, {
      unfinishedRuns: "1",
      condition: `t.unfinished_runs = 0 and (${sql.turnsSeen} is null or t.turns = ${sql.turnsSeen})`,
      stateUnchanged: "t.state_updated_at = before.state_updated_at",
      behind: "false",
      turn: "t.turns",
    }),
  ),
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
  const creation = { rights, run, claim, mayWait };
  return openRuns(queryable, await CREATE_ON_IDLE_THREAD.query<ClaimedRunRow>(queryable, creation))[0];
};
