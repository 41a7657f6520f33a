import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
import type { CancelAction, CancelReason } from "../../../platform/database/tables.ts";

/** An interrupt does not replace a rollback, and the first reason stays. Index: runs_pkey. */
const ASK_TO_CANCEL = statement(
  { threadIds: "uuid[]", runIds: "uuid[]", action: "text", reason: "text" },
  (sql) => `update threadloom.runs set updated_at = now(),
    cancel_action = case when cancel_action = 'rollback' then cancel_action else ${sql.action} end,
    cancel_reason = coalesce(cancel_reason, ${sql.reason})
  where thread_id = any(${sql.threadIds}) and run_id = any(${sql.runIds}) and status = 'running'`,
);

/** The holder of the run learns this by a signal, or from its next renewal. */
export const askToCancel = async (
  transaction: Queryable,
  runs: readonly { thread_id: string; run_id: string }[],
  action: CancelAction,
  reason: CancelReason,
): Promise<void> => {
  await ASK_TO_CANCEL.query(transaction, {
    threadIds: [...new Set(runs.map((run) => run.thread_id))],
    runIds: runs.map((run) => run.run_id),
    action,
    reason,
  });
};
