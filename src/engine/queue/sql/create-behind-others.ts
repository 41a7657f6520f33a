import type { Queryable } from "../../../platform/database/database.ts";
import type { RunRow } from "../../../platform/database/tables.ts";
import { openRuns } from "../columns.ts";
import {
  ASSISTANT_VISIBLE,
  createMany,
  RUN_PARAMETERS,
  takeThread,
  THREAD_VISIBLE,
  type CreationRights,
  type NewRun,
} from "./create.ts";

interface BehindOthers {
  run: NewRun;
  /** Pending runs that were ended in favour of this one. Default: 0. */
  replacedPending?: number;
  /** Includes this run; null: no limit. */
  pendingAtMost?: number | null;
}

const THREAD_PARAMETERS = {
  replacedPending: ["integer", ({ replacedPending }: BehindOthers) => replacedPending ?? 0],
  pendingAtMost: ["integer", ({ pendingAtMost }: BehindOthers) => pendingAtMost ?? null],
} as const;
const CONDITIONS = { ...ASSISTANT_VISIBLE, ...THREAD_VISIBLE };

/**
 * → pending, on a thread that may be busy; the caller holds the thread's lock. Indexes: threads_pkey,
 * runs_one_begun_per_thread, runs_pending_of_thread.
 */
const thread = (
  sql: Parameters<typeof takeThread>[0] & Record<keyof typeof THREAD_PARAMETERS | "afterSeconds", string>,
): string =>
  takeThread(sql, {
    unfinishedRuns: `t.unfinished_runs + 1 - ${sql.replacedPending}`,
    condition: `(${sql.pendingAtMost} is null or t.unfinished_runs - ${sql.replacedPending} < ${sql.pendingAtMost}
      + (select count(*) from threadloom.runs x where x.thread_id = t.thread_id and x.status = 'running'))`,
    stateUnchanged: "false",
    behind: `${sql.afterSeconds} <= 0 and exists (
      select from threadloom.runs x where x.thread_id = ${sql.threadId}
        and (x.status = 'running' or (x.status = 'pending' and x.available_at <= now())))`,
    turn: "0",
  });

const CREATE_BEHIND_OTHERS = createMany({ ...RUN_PARAMETERS, ...THREAD_PARAMETERS }, CONDITIONS, thread);

/**
 * The caller holds the threads' locks and names each thread once. Stores no run
 * whose assistant is missing or hidden, and none on a thread that has `pendingAtMost` pending runs.
 */
export const createBehindOthers = async (
  transaction: Queryable,
  rights: CreationRights,
  creations: readonly BehindOthers[],
): Promise<RunRow[]> =>
  creations.length === 0
    ? []
    : openRuns(transaction, await CREATE_BEHIND_OTHERS.query<RunRow>(transaction, { rights, creations }));
