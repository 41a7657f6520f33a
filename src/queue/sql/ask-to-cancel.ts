import type { Queryable } from "../../database/database.ts";
import type { CancelAction } from "../../database/tables.ts";

/** A rollback is not taken back by an interrupt. Index: runs_pkey. */
const ASK_TO_CANCEL = `update threadloom.runs set updated_at = now(),
    cancel_action = case when cancel_action = 'rollback' then cancel_action else $2 end
  where run_id = any($1::uuid[]) and status = 'running'`;

/** Asks the holders of runs in progress to end them. They learn it from their next renewal, or by a signal. */
export const askToCancel = async (
  transaction: Queryable,
  runIds: readonly string[],
  action: CancelAction,
): Promise<void> => {
  await transaction.query(ASK_TO_CANCEL, [runIds, action]);
};
