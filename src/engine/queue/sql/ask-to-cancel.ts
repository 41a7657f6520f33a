import type { Queryable } from "../../../platform/database/database.ts";
import type { CancelAction, CancelReason } from "../../../platform/database/tables.ts";

/** An interrupt does not replace a rollback, and the first reason stays. Index: runs_pkey. */
const ASK_TO_CANCEL = `update threadloom.runs set updated_at = now(),
    cancel_action = case when cancel_action = 'rollback' then cancel_action else $3 end,
    cancel_reason = coalesce(cancel_reason, $4)
  where thread_id = any($1::uuid[]) and run_id = any($2::uuid[]) and status = 'running'`;

/** A holder learns this by a signal or from its next renewal. */
export const askToCancel = async (
  transaction: Queryable,
  runs: readonly { thread_id: string; run_id: string }[],
  action: CancelAction,
  reason: CancelReason,
): Promise<void> => {
  await transaction.query(ASK_TO_CANCEL, [
    [...new Set(runs.map((run) => run.thread_id))],
    runs.map((run) => run.run_id),
    action,
    reason,
  ]);
};
